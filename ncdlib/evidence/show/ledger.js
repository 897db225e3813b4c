(function () {
  const root = document.getElementById("claims-ledger");
  const [text, verdict, chapter] = ["text", "verdict", "chapter"].map(n => root.querySelector(`[name=${n}]`));
  const cards = [...root.querySelectorAll("details")];
  const count = root.querySelector("[role=status]");
  function apply() {
    const words = text.value.toLowerCase().split(" ").filter(Boolean);
    let shown = 0;
    for (const card of cards) {
      const content = card.textContent.toLowerCase();
      const hit = words.every(w => content.includes(w))
        && (!verdict.value || card.dataset.verdict === verdict.value)
        && (!chapter.value || card.dataset.chapter === chapter.value);
      card.hidden = !hit;
      shown += hit;
    }
    count.textContent = `${shown} of ${cards.length} claims`;
  }
  [text, verdict, chapter].forEach(field => field.addEventListener("input", apply));
  function open() {
    const card = location.hash && document.getElementById(location.hash.slice(1));
    if (card && card.tagName === "DETAILS") { card.open = true; card.scrollIntoView(); }
  }
  window.addEventListener("hashchange", open);
  open();
  apply();
})();
