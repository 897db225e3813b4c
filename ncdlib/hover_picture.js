// Show the picture of the point under the pointer: a small window on one sheet with all pictures.
// ncdlib.plots fills in SHEET (address, columns, rows; width and height of one picture), plotly {plot_id}.
const plot = document.getElementById("{plot_id}"), picture = document.createElement("div");
const sheet = SHEET;
picture.style.cssText = "position:absolute; display:none; pointer-events:none; z-index:10; "
  + "width:" + sheet.width + "px; height:" + sheet.height + "px; border:1px solid #444; image-rendering:pixelated; "
  + "background-size:" + sheet.width * sheet.columns + "px " + sheet.height * sheet.rows + "px; "
  + "background-image:url(" + sheet.address + ")";
plot.parentElement.appendChild(picture);
plot.on("plotly_hover", (hover) => {
  const number = hover.points[0].customdata;
  if (!Number.isInteger(number)) return;
  const frame = plot.getBoundingClientRect(), x = hover.event.clientX - frame.left;
  const left = sheet.width * (number % sheet.columns), top = sheet.height * Math.floor(number / sheet.columns);
  picture.style.backgroundPosition = `-${left}px -${top}px`;
  picture.style.left = (x < frame.width / 2 ? x + 14 : x - (sheet.width + 14)) + "px";
  picture.style.top = Math.max(0, hover.event.clientY - frame.top - (sheet.height + 14)) + "px";
  picture.style.display = "block";
});
plot.on("plotly_unhover", () => { picture.style.display = "none"; });
