// A box that scrolls sideways must be reachable by keyboard.
function markScrollable() {
  for (const box of document.querySelectorAll(".cell_output .output.text_html")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
window.addEventListener("load", markScrollable);
window.addEventListener("resize", markScrollable);
