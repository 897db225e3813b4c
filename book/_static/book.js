// A box that scrolls must be reachable by keyboard; the theme sees to code, but not to code that was folded.
function markScrollable() {
  const boxes = ".cell_output .output.text_html, .cell_output:has(> figure), .pst-scrollable-table-container, "
    + ".bd-article :is(details, .toggle) pre";
  for (const box of document.querySelectorAll(boxes)) {
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
  document.querySelectorAll(".output.text_html, .pst-scrollable-table-container").forEach(markEdge);
}
function markEdge(box) {
  if (box.scrollLeft + box.clientWidth < box.scrollWidth - 1) box.dataset.more = "right";
  else delete box.dataset.more;
}
document.addEventListener("scroll", (event) => {
  if (event.target.matches?.(".output.text_html, .pst-scrollable-table-container")) markEdge(event.target);
}, true);
window.addEventListener("load", markScrollable);
window.addEventListener("resize", markScrollable);
document.addEventListener("toggle", markScrollable, true);
document.addEventListener("click", () => setTimeout(markScrollable));

// Buttons that show a picture only: a name for those who do not see it.
window.addEventListener("load", () => {
  for (const button of document.querySelectorAll("button.copybtn")) button.setAttribute("aria-label", "Copy the code");
});

// Plotly is heavier than all the rest of a page: it is loaded, once, when a reader comes near a figure made with it.
let plotly = null;
function loadPlotly() {
  plotly ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = document.documentElement.dataset.content_root + "_static/plotly.min.js";
    [script.onload, script.onerror] = [done, failed];
    document.head.append(script);
  });
  return plotly;
}
async function drawFigure(recipe) {
  await loadPlotly();
  const script = document.createElement("script");
  script.textContent = recipe.textContent;
  recipe.replaceWith(script);
}
document.addEventListener("DOMContentLoaded", () => {
  const recipes = new Map();
  const watcher = new IntersectionObserver((seen) => {
    for (const entry of seen.filter((one) => one.isIntersecting)) {
      watcher.unobserve(entry.target);
      drawFigure(recipes.get(entry.target));
    }
  }, { rootMargin: "600px" });
  for (const recipe of document.querySelectorAll('script[type="text/plotly"]')) {
    const place = recipe.parentElement.querySelector(".plotly-graph-div") ?? recipe.parentElement;
    recipes.set(place, recipe);
    watcher.observe(place);
  }
  // What is printed is drawn, however far down it is.
  window.addEventListener("beforeprint", () => document.querySelectorAll('script[type="text/plotly"]').forEach(drawFigure));
});
