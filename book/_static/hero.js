// Draws rows of digits that travel from picture to picture of the latent space, and rests at the last one.
// Readers who prefer less motion get the last picture; the button plays it for them, too.

document.querySelectorAll("figure.hero").forEach((figure) => {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const canvas = figure.querySelector("canvas"), pen = canvas.getContext("2d");
  const button = figure.querySelector("button"), label = figure.querySelector(".hero-epoch");
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const GRID = 999, TRAVEL = 1500, REST = 500, LAST_REST = 3500; // milliseconds
  if (figure.clientWidth < 600) [canvas.width, canvas.height] = [720, 640]; // a phone: fewer pixels, larger digits
  const SIZE = canvas.width < 1000 ? 28 : 33;
  const last = data.places.length - 1;
  let time = 0, before = null, playing = false, near = true, sprites = [];

  // In the dark, colours keep their hue and turn their lightness round, as all figures of the book do (book.css).
  const inDark = (rgb) => {
    const [r, g, b] = rgb.map((value) => 255 - value);
    const grey = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    return [r, g, b].map((value) => Math.max(0, Math.min(255, 2 * grey - value)));
  };

  function inkSprites(sheet) {
    const side = sheet.width, dark = document.documentElement.dataset.theme === "dark";
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [sheet.width, sheet.height];
    const copyPen = copy.getContext("2d");
    copyPen.drawImage(sheet, 0, 0);
    sprites = data.color.map((number, i) => {
      const hex = data.colors[data.known[i] ? "known" : "novel"][number];
      let rgb = [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
      if (dark) rgb = inDark(rgb);
      const picture = copyPen.getImageData(0, i * side, side, side);
      for (let p = 0; p < picture.data.length; p += 4) {
        const ink = picture.data[p];
        picture.data.set([...rgb, ink], p);
      }
      const sprite = document.createElement("canvas");
      sprite.width = sprite.height = side;
      sprite.getContext("2d").putImageData(picture, 0, 0);
      return sprite;
    });
  }

  const smooth = (t) => t * t * (3 - 2 * t);

  function draw() {
    const step = TRAVEL + REST, i = Math.min(Math.floor(time / step), last);
    const share = i === last ? 0 : smooth(Math.min((time - i * step) / TRAVEL, 1));
    const from = data.places[i], to = data.places[Math.min(i + 1, last)];
    const size = SIZE;
    pen.imageSmoothingEnabled = false;
    pen.clearRect(0, 0, canvas.width, canvas.height);
    sprites.forEach((sprite, row) => {
      const [x, y] = [0, 1].map((axis) => from[row][axis] + share * (to[row][axis] - from[row][axis]));
      pen.drawImage(sprite, (x / GRID) * (canvas.width - size), (y / GRID) * (canvas.height - size), size, size);
    });
    const epoch = data.epochs[share > 0.5 ? i + 1 : i];
    label.textContent = epoch === 0 ? "Untrained." : `Epoch ${epoch}.`;
  }

  function tick(now) {
    if (!playing || !near) { before = null; return; }
    time += before === null ? 0 : Math.min(now - before, 100);
    before = now;
    if (time > last * (TRAVEL + REST) + LAST_REST) time = 0;
    draw();
    requestAnimationFrame(tick);
  }

  function play(on) {
    playing = on;
    button.textContent = on ? "Pause" : "Play";
    if (on) requestAnimationFrame(tick);
  }

  const sheet = new Image();
  sheet.onload = () => {
    inkSprites(sheet);
    if (calm.matches) { time = last * (TRAVEL + REST); play(false); draw(); } else play(true);
    button.addEventListener("click", () => play(!playing));
    new MutationObserver(() => { inkSprites(sheet); draw(); })
      .observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    new IntersectionObserver(([entry]) => {
      near = entry.isIntersecting;
      if (near && playing) requestAnimationFrame(tick);
    }).observe(canvas);
  };
  sheet.src = "data:image/png;base64," + data.sheet;
});
