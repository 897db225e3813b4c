// The ledger without this script is a plain table with all numbers in view. With it, claims fold, sort and filter.
(function () {
  const UNIT = "(?:tables?|figures?|algorithms?|sections?|appendix)\\s+[\\w.]*\\w";
  const TERMS = new RegExp(`"([^"]+)"?|(${UNIT})|([^\\s"]+)`, "giu");
  const IS_UNIT = new RegExp(`^${UNIT}$`, "iu");

  // A test of a claim's text and places for each thing asked for. A table, figure, algorithm or section is meant as a
  // whole: "Table 1" is not Table 10. So are a phrase in quotes and a number; any other word may be the start of one.
  function testsOf(query) {
    return [...query.matchAll(TERMS)].map(([, phrase, unit, word]) => {
      const term = (phrase ?? unit ?? word).trim().replace(/\s+/g, " ").toLowerCase();
      if (IS_UNIT.test(term)) {
        const place = term.replace(/^(table|figure|algorithm|section)s /, "$1 ");
        return (claim) => claim.places.includes(place);
      }
      const whole = phrase !== undefined || /\d$/.test(term);
      const pattern = new RegExp(
        "(?<![\\p{L}\\p{N}]|\\p{N}\\.)" + term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
          + (whole ? "(?![\\p{L}\\p{N}]|\\.\\p{N})" : ""), "u");
      return (claim) => pattern.test(claim.text);
    });
  }

  function unfold(claim, open) {
    claim.button.setAttribute("aria-expanded", String(open));
    claim.more.hidden = !open;
  }

  function fold(root, nth) {
    return [...root.querySelectorAll("tbody")].map((body, position) => {
      const [says, more] = [body.querySelector(".says"), body.querySelector(".more")];
      const button = document.createElement("button");
      button.type = "button";
      button.className = "unfold";
      button.textContent = says.textContent;
      more.id ||= `claims-${nth}-${position}`;
      button.setAttribute("aria-controls", more.id);
      says.replaceChildren(button);
      const claim = {
        body, more, button, position,
        text: body.textContent.replace(/\s+/g, " ").toLowerCase(),
        places: body.dataset.places.toLowerCase().split("|"),
      };
      unfold(claim, body.hasAttribute("data-open"));
      button.addEventListener("click", () => unfold(claim, more.hidden));
      return claim;
    });
  }

  function keyOf(claim, column) {
    const cell = claim.body.rows[0].cells[column];
    return cell.dataset.sort === undefined ? cell.textContent.trim() : Number.parseFloat(cell.dataset.sort);
  }

  // Up, down, and back to the order of the paper's tables. What has no number comes last.
  function makeSortable(root, claims) {
    const heads = [...root.querySelectorAll("thead th")];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const next = { ascending: "descending", descending: "" }[head.getAttribute("aria-sort")] ?? "ascending";
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        if (next) head.setAttribute("aria-sort", next);
        const turn = next === "descending" ? -1 : 1;
        const sorted = [...claims].sort((a, b) => {
          const [x, y] = [keyOf(a, column), keyOf(b, column)];
          if (!next || x === y) return a.position - b.position;
          if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a.position - b.position;
          return turn * (typeof x === "string" ? x.localeCompare(y) : x - y);
        });
        root.querySelector("table").append(...sorted.map((claim) => claim.body));
      });
    });
  }

  function makeFilters(root, claims) {
    const filters = root.querySelector(".filters");
    const fields = Object.fromEntries([...filters.querySelectorAll("[name]")].map((field) => [field.name, field]));
    const status = filters.querySelector("[role=status]");
    filters.hidden = false;

    function apply() {
      const tests = testsOf(fields.words.value);
      if (fields.place.value) tests.push((claim) => claim.places.includes(fields.place.value.toLowerCase()));
      for (const name of ["verdict", "chapter"]) {
        if (fields[name].value) tests.push((claim) => claim.body.dataset[name] === fields[name].value);
      }
      for (const claim of claims) claim.body.hidden = !tests.every((test) => test(claim));
      const shown = claims.filter((claim) => !claim.body.hidden).length;
      status.textContent = `${shown} of ${claims.length} claims`;
    }
    // The address names what is asked for, so that it can be sent to somebody.
    function asked() {
      const given = Object.entries(fields).filter(([, field]) => field.value).map(([name, field]) => [name, field.value]);
      history.replaceState(null, "", location.pathname + (given.length ? `?${new URLSearchParams(given)}` : ""));
      apply();
    }
    function show(values) {
      for (const [name, field] of Object.entries(fields)) field.value = values[name] ?? "";
      apply();
    }
    function followAddress() {
      const values = Object.fromEntries(new URLSearchParams(location.search));
      const linked = claims.find((claim) => claim.body.id === location.hash.slice(1));
      const filtered = Object.keys(values).some((name) => name in fields);
      show(linked ? {} : values);
      if (linked) {
        unfold(linked, true);
        linked.body.scrollIntoView();
        linked.button.focus({ preventScroll: true });
      } else if (filtered) root.scrollIntoView();
    }
    Object.values(fields).forEach((field) => field.addEventListener("input", asked));
    filters.querySelector("button").addEventListener("click", () => { show({}); asked(); });
    window.addEventListener("hashchange", followAddress);
    window.addEventListener("load", () => location.hash && followAddress());  // the browser moves the focus until then
    followAddress();
  }

  document.querySelectorAll(".claims:not([data-ready])").forEach((root, nth) => {
    root.dataset.ready = "";
    const claims = fold(root, nth);
    makeSortable(root, claims);
    if (root.querySelector(".filters")) makeFilters(root, claims);
  });
})();
