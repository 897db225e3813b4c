"""Files as people have them: odd encodings, separators and numbers, and labels as they stand there."""

import codecs
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from own_tables import write_csv

from ncdlib.own_data.discover import discover_file
from ncdlib.own_data.read import as_labels, read_table, write_with_columns


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b\n1,x\n2,y\n", {"a": [1, 2], "b": ["x", "y"]}),
        (b"\xef\xbb\xbfa,b\n1,x\n2,y\n", {"a": [1, 2], "b": ["x", "y"]}),
        (b"a;b\n1,5;x\n2,25;y\n", {"a": [1.5, 2.25], "b": ["x", "y"]}),
        (b"a\tb\n1\tx\n2\ty\n", {"a": [1, 2], "b": ["x", "y"]}),
        ("a,b\n1,é\n2,ü\n".encode("latin-1"), {"a": [1, 2], "b": ["é", "ü"]}),
        (b"a,b\r\n1,x\r\n?,y\r\n", {"a": [1, np.nan], "b": ["x", "y"]}),
        (b"a\n1\n2\n", {"a": [1, 2]}),
        (b"a,b\n1,x,\n2,y,\n", {"a": [1, 2], "b": ["x", "y"]}),  # a separator ends each row
        (b"sep=;\na;b\n1;x\n2;y\n", {"a": [1, 2], "b": ["x", "y"]}),
        (b"a;b\n1.234,56;x\n78,9;y\n", {"a": [1234.56, 78.9], "b": ["x", "y"]}),
        (b"a;b\n0,125;x\n0,250;y\n", {"a": [0.125, 0.25], "b": ["x", "y"]}),
        (b"a,b\n1,None\n2,NA\n3,x\n", {"a": [1, 2, 3], "b": [None, None, "x"]}),
    ],
)
def test_read_csv_as_people_write_it(tmp_path, content, expected):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    pd.testing.assert_frame_equal(read_table(path), pd.DataFrame(expected), check_dtype=False)


def test_labels_of_a_file(tmp_path):
    path = tmp_path / "faults.csv"
    kinds = ["None", " bearing ", "bearing", "01", "1", "", "?", "NA", " -1", "  "]
    path.write_text("x,fault\n" + "".join(f"{i},{kinds[i % 10]}\n" for i in range(200)))
    table, found = discover_file(path, "fault", method="ncd_kmeans", n_clusters=2, unlabeled="new", verbose=False)
    labels = found.to_frame()
    assert set(labels["label"][~labels["discovered"]]) == {"None", "bearing", "01", "1"}  # no fault is a class, too
    assert labels["discovered"].sum() == 100
    assert table["fault"].iloc[3] == "01"  # as it was
    path.write_text("x,code\n" + "".join(f"{i},{['01', '1', '02', ''][i % 4]}\n" for i in range(200)))
    _, found = discover_file(path, "code", method="ncd_kmeans", n_clusters=2, unlabeled="new", verbose=False)
    assert set(found.known) == {"01", "1", "02", None}
    assert as_labels(pd.Series([0.0, 1.0, np.nan])).tolist() == [0, 1, pd.NA]
    with pytest.raises(ValueError, match="'kind' has labels that are no single values"):
        as_labels(pd.Series([[1], [2]], name="kind"))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1.10", "1.1", "7"], ["1.10", "1.1", "7"]),
        (["12345678901234567890", "12345678901234567891", ""], ["12345678901234567890", "12345678901234567891", None]),
        (["1.0", "1", "+2", "2.", "0.5"], [1, 1, 2, 2, 0.5]),
    ],
)
def test_different_labels_stay_different_classes(texts, expected):
    assert as_labels(pd.Series(texts)).tolist() == expected


def test_parquet_as_pandas_writes_it(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({0: [1.0, 2.0], 7: ["a", "b"]}).to_parquet(path)
    assert list(read_table(path).columns) == ["0", "7"]
    with pytest.raises(ValueError, match="has no column 'label': it has 0, 7"):
        discover_file(path, "label")
    lists = tmp_path / "lists.parquet"
    pd.DataFrame({"x": [1.0, 2.0], "label": [[1], [2]]}).to_parquet(lists)
    with pytest.raises(ValueError, match="'label' has labels that are no single values"):
        discover_file(lists, "label")


@pytest.mark.parametrize("name", ["table.csv.gz", "table.xlsx"])
def test_files_of_other_kinds(tmp_path, name):
    (tmp_path / name).write_bytes(b"anything")
    with pytest.raises(ValueError, match="unpack it first|save it as CSV"):
        read_table(tmp_path / name)


def test_a_file_that_changes_meanwhile_is_not_mixed_with_old_labels(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,class\n1,a\n2,b\n")
    with pytest.raises(ValueError, match=r"t\.csv has changed since it was read"), open(tmp_path / "o", "wb") as file:
        write_with_columns(path, pd.DataFrame({"ncd_label": ["a", "b", "new 1"]}), file)


@pytest.mark.parametrize(("cell", "refused"), [("12.500", True), ("12.50", False), ("0.500", False)])
def test_points_between_thousands_beside_decimal_commas(tmp_path, cell, refused):
    path = tmp_path / "t.csv"
    path.write_text(f"amount;rate;class\n1.234;3,5;a\n900;2,25;b\n{cell};1,5;\n")
    if refused:
        with pytest.raises(
            ValueError, match="'amount' has numbers like 1.234: write 1234 if the point marks thousands"
        ):
            read_table(path)
    else:
        assert read_table(path)["amount"].iloc[0] == 1.234


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_files_with_a_byte_order_mark(tmp_path, encoding):
    table = read_table(write_csv(tmp_path / "t.csv", "é,y,class", sep=";", encoding=encoding))
    assert table.columns.tolist() == ["é", "y", "class"] and len(table) == 90
    assert table["é"].dtype == np.float64


def test_a_bad_byte_far_from_the_start_makes_it_latin_1(tmp_path):
    path = write_csv(tmp_path / "t.csv", n_rows=100_000)
    with path.open("ab") as file:
        file.write("1,2,é\n".encode("latin-1"))
    assert read_table(path)["class"].iloc[-1] == "é"


@pytest.mark.parametrize(
    "content",
    [
        "<!DOCTYPE html><html><body>no</body></html>",
        "\n<html>\n<body>\nno, it is none</body></html>\n",
        '{"a": [1, 2], "b": [3, 4]}',
        '[{"a": 1, "b": 2},\n {"a": 1, "b": 3}]',
    ],
)
def test_pages_and_json_are_no_tables(tmp_path, content):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(ValueError, match="t.csv is not a CSV file: it looks like (HTML|JSON)"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("cell", ['",' * 30_000 + '"', "'," * 30_000])
def test_thousands_of_quotes_are_read_at_once(tmp_path, cell):
    """csv.Sniffer alone takes minutes."""
    (tmp_path / "t.csv").write_text("x;class\n" + f"1;{cell}\n" + "2;b\n" * 20)
    began = time.perf_counter()
    assert read_table(tmp_path / "t.csv").shape == (21, 2)
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    "content",
    [
        'a;b\n"x, y";1\n"u, v, w";2\n',
        'a;b\n5" pipe, long;1\n6" pipe;2\n',
        "a;b\nO'Neil, 'x', y;1\nd'Arc;2\n",
        'a;b\n"one,\n two,\n three";1\nx;2\n',
        "a;b\n1\x85,;1\n2\u2028,\x0b\x1c;2\n",
        "a;b;" + ";".join(map(str, range(3_000))) + "\n" + ("1" + ";1234" * 3_001 + "\n") * 20,  # 64 kB are four lines
    ],
)
def test_the_separator_is_found_beside_other_signs(tmp_path, content):
    (tmp_path / "t.csv").write_text(content, encoding="utf-8")
    assert read_table(tmp_path / "t.csv").columns.tolist()[:2] == ["a", "b"]


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\x0b", "\x1c"])
def test_signs_that_end_a_line_elsewhere_stay_in_a_label(tmp_path, sign):
    (tmp_path / "t.csv").write_text(f"x,class\n1,a{sign}b\n2,c\n", encoding="utf-8")
    assert as_labels(read_table(tmp_path / "t.csv", "class")["class"]).tolist() == [f"a{sign}b", "c"]


def test_newlines_in_quotes(tmp_path):
    text = 'x,"a\nb",class\n' + "".join(f'{i},"one\n{i % 2}",{"ab"[i % 2]}\n' for i in range(30))
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    table = read_table(path)
    assert table.columns.tolist() == ["x", "a\nb", "class"] and len(table) == 30
    assert set(table["a\nb"]) == {"one\n0", "one\n1"}


def test_two_columns_of_one_name(tmp_path):
    """pandas would name the second one "class.1", and the labels would be learned from."""
    with pytest.raises(ValueError, match="has two columns 'class': rename one"):
        read_table(write_csv(tmp_path / "t.csv", "class,y,class"))


def test_a_column_is_of_one_type_in_a_long_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,class\n" + "1.5,7\n" * 400_000 + "1.5,b\n", encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(read_table(path)["class"]) == {"7", "b"}


@pytest.mark.parametrize("mark", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE])
def test_a_file_of_nothing_but_a_byte_order_mark(tmp_path, mark):
    (tmp_path / "t.csv").write_bytes(mark)
    with pytest.raises(ValueError, match="t.csv is empty"):
        read_table(tmp_path / "t.csv")


def test_a_title_above_the_header(tmp_path):
    (tmp_path / "t.csv").write_text("My table\na,b,c\n1,2,3\n4,5,6\n")
    with pytest.raises(ValueError, match=r"more fields than its header has names \(1\)"):
        read_table(tmp_path / "t.csv")
