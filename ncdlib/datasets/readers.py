"""From files to arrays: X, y and feature_names, and X_test and y_test where the data come in two parts.

A column of categories holds their codes in X; ``categories_<column>`` lists what they stand for.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_digits

Arrays = dict[str, NDArray]
Paths = Mapping[str, Path]

CATEGORIES = "categories_"  # followed by the name of the column
PIXELS = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
# The classes that are text in the files; a class's code is its place here.
STEEL = "Pastry Z_Scratch K_Scatch Stains Dirtiness Bumps Other_Faults".split()
VOWEL = "hAd hEd hId hOd hUd hYd had hed hid hod hud".split()
VEHICLE = "bus opel saab van".split()
SEGMENT = "brickface cement foliage grass path sky window".split()
NSLKDD = (
    "apache2 back buffer_overflow ftp_write guess_passwd httptunnel imap ipsweep land loadmodule mailbomb mscan "
    "multihop named neptune nmap normal perl phf pod portsweep processtable ps rootkit saint satan sendmail smurf "
    "snmpgetattack snmpguess spy sqlattack teardrop udpstorm warezclient warezmaster worm xlock xsnoop xterm"
).split()
NSLKDD_COLUMNS = (
    "duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot num_failed_logins "
    "logged_in num_compromised root_shell su_attempted num_root num_file_creations num_shells num_access_files "
    "num_outbound_cmds is_host_login is_guest_login count srv_count serror_rate srv_serror_rate rerror_rate "
    "srv_rerror_rate same_srv_rate diff_srv_rate srv_diff_host_rate dst_host_count dst_host_srv_count "
    "dst_host_same_srv_rate dst_host_diff_srv_rate dst_host_same_src_port_rate dst_host_srv_diff_host_rate "
    "dst_host_serror_rate dst_host_srv_serror_rate dst_host_rerror_rate dst_host_srv_rerror_rate"
).split()


def read_human(paths: Paths) -> Arrays:
    names = [line.split(maxsplit=1)[1].strip() for line in paths["features.txt"].read_text().splitlines()]
    arrays = {"feature_names": np.array([*_distinct(names), "subject"])}
    for part, suffix in (("train", ""), ("test", "_test")):
        X = pd.read_csv(paths[f"{part}/X_{part}.txt"], sep=r"\s+", header=None, dtype=np.float64).to_numpy()
        subject = np.loadtxt(paths[f"{part}/subject_{part}.txt"], dtype=np.int64, ndmin=1)
        # NOTE[DIFF] the paper counts 562 features: the 561 of the data set, and the subject as one more.
        arrays[f"X{suffix}"] = np.column_stack([X, subject])
        arrays[f"y{suffix}"] = np.loadtxt(paths[f"{part}/y_{part}.txt"], dtype=np.int64, ndmin=1)
    return arrays


def _distinct(names: list[str]) -> list[str]:
    """Tell repeated names apart: the band energies of HAR come three times, for the axes X, Y and Z."""
    names = pd.Series(names)
    axis = names.groupby(names).cumcount().map(lambda n: f"-{'XYZ'[n] if n < 3 else n + 1}")
    return names.where(~names.duplicated(keep=False), names + axis).tolist()


def read_letter(paths: Paths) -> Arrays:
    # NOTE[DIFF] the first row is lost, as to the authors: the paper's 13,999 rows are 70 % of 19,999.
    table = pd.read_csv(paths["letter-recognition.data"], header=None, skiprows=1)
    return {
        "X": table.iloc[:, 1:].to_numpy(np.float64),
        "y": np.array([string.ascii_uppercase.index(letter) for letter in table[0]]),
        "feature_names": np.array(
            "x-box y-box width height on-pixels x-mean y-mean x2-mean y2-mean xy-mean x2y-mean xy2-mean "
            "x-edge x-edge-by-y y-edge y-edge-by-x".split()
        ),
    }


def _read_train_and_test(train: Path, test: Path, feature_names: list[str], drop: tuple[int, ...] = ()) -> Arrays:
    """Read comma-separated numbers with the label in the last column."""
    arrays = {"feature_names": np.delete(np.array(feature_names), drop)}
    for path, suffix in ((train, ""), (test, "_test")):
        table = pd.read_csv(path, header=None, skipinitialspace=True).to_numpy(np.float64)
        arrays[f"X{suffix}"] = np.delete(table[:, :-1], drop, axis=1)
        arrays[f"y{suffix}"] = table[:, -1].astype(np.int64)
    return arrays


def read_pendigits(paths: Paths) -> Arrays:
    names = [f"{axis}{point}" for point in range(1, 9) for axis in "xy"]
    return _read_train_and_test(paths["pendigits.tra"], paths["pendigits.tes"], names)


def read_optdigits(paths: Paths) -> Arrays:
    # Columns 0 and 39 are constant.
    return _read_train_and_test(paths["optdigits.tra"], paths["optdigits.tes"], PIXELS, drop=(0, 39))


def read_digits(paths: Paths) -> Arrays:
    digits = load_digits()
    return {"X": digits.data, "y": digits.target, "images": digits.images, "feature_names": np.array(PIXELS)}


def read_mfeat(paths: Paths) -> Arrays:
    # NOTE[DIFF] 215 features, where the paper says 515: no combination of the data set's files has 515.
    X = pd.read_csv(paths["mfeat-fac"], sep=r"\s+", header=None, dtype=np.float64).to_numpy()[:, 1:]
    return {
        "X": X,
        "y": np.repeat(np.arange(10), len(X) // 10),  # the rows come digit by digit, as many of each
        "feature_names": np.array([f"fac{column}" for column in range(2, X.shape[1] + 2)]),
    }


def read_cnae9(paths: Paths) -> Arrays:
    table = pd.read_csv(paths["CNAE-9.data"], header=None, dtype=np.int64).to_numpy()
    return {
        "X": table[:, 1:],
        "y": table[:, 0],
        "feature_names": np.array([f"word{column}" for column in range(1, table.shape[1])]),
    }


def read_census(paths: Paths) -> Arrays:
    # NOTE[DIFF] the paper says that categories are one-hot encoded; its 67 features are the codes as numbers.
    # int16 holds every code, and keeps the 2,458,285 rows of the full file small.
    table = pd.read_csv(paths["USCensus1990.data.txt"], usecols=lambda name: name != "caseid", dtype=np.int16)
    y = table.pop("iYearsch")
    return {"X": table.to_numpy(), "y": y.to_numpy(), "feature_names": np.array(table.columns, dtype=str)}


def _decimals(table: pd.DataFrame) -> NDArray[np.float64]:
    """Turn text into numbers as Python does: pandas' own way is quicker, and may be wrong in the last bit."""
    return table.to_numpy(object).astype(np.float64)


def read_steel(paths: Paths) -> Arrays:
    table = pd.read_csv(paths["steel_plates_faults.csv"], dtype=str)
    names = [name if name in table else f"{name}_Fault" for name in STEEL]
    faults = _decimals(table[names])
    if not np.all(faults.sum(axis=1) == 1):
        raise ValueError("a row of steel_plates_faults.csv has no fault, or more than one")
    table = table.drop(columns=names)
    return {
        "X": _decimals(table),
        "y": faults.argmax(axis=1),
        "feature_names": np.array(table.columns, dtype=str),
    }


def _read_labelled(path: Path, label: str, classes: list[str], drop: tuple[str, ...] = ()) -> Arrays:
    """Read a table with a header, whose classes are text."""
    table = pd.read_csv(path, dtype=str).drop(columns=list(drop))
    y = _codes(table.pop(label), classes)
    return {"X": _decimals(table), "y": y, "feature_names": np.array(table.columns, dtype=str)}


def _codes(column: pd.Series, names: list[str]) -> NDArray[np.int64]:
    codes = pd.Index(names).get_indexer(column).astype(np.int64)
    if np.any(codes < 0):
        raise ValueError(f"{column[codes < 0].iloc[0]!r} is none of {', '.join(names)}")
    return codes


def read_vowel(paths: Paths) -> Arrays:
    return _read_labelled(paths["vowel.csv"], "Class", VOWEL, drop=("V1",))  # V1 is the speaker


def read_vehicle(paths: Paths) -> Arrays:
    return _read_labelled(paths["vehicle.csv"], "Class", VEHICLE)


def read_segment(paths: Paths) -> Arrays:
    return _read_labelled(paths["segment.csv"], "class", SEGMENT)


def read_nslkdd(paths: Paths) -> Arrays:
    columns = [*NSLKDD_COLUMNS, "attack", "difficulty"]  # the last one is about other people's classifiers
    parts = {
        suffix: pd.read_csv(paths[file], header=None, names=columns, dtype=str).drop(columns="difficulty")
        for suffix, file in (("", "KDDTrain+_20Percent.txt"), ("_test", "KDDTest+.txt"))
    }
    arrays = {"feature_names": np.array(NSLKDD_COLUMNS)}
    for suffix, table in parts.items():
        arrays[f"y{suffix}"] = _codes(table.pop("attack"), NSLKDD)
    for column in ("protocol_type", "service", "flag"):
        names = sorted(set().union(*(table[column] for table in parts.values())))
        arrays[CATEGORIES + column] = np.array(names)
        for table in parts.values():
            table[column] = _codes(table[column], names)
    return arrays | {f"X{suffix}": _decimals(table) for suffix, table in parts.items()}
