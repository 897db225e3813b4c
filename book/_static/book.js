// A box that scrolls sideways must be reachable by keyboard; the theme sees to code, but not to code that was folded.
function markScrollable() {
  const boxes = ".cell_output .output.text_html, .cell_output:has(> figure), .bd-article :is(details, .toggle) pre";
  for (const box of document.querySelectorAll(boxes)) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
window.addEventListener("load", markScrollable);
window.addEventListener("resize", markScrollable);
document.addEventListener("toggle", markScrollable, true);
document.addEventListener("click", () => setTimeout(markScrollable));
