// What is wrong with the page as it is shown now: controls that overlap or are cut off, and text that is too pale.
(() => {
  const wrong = [];
  const name = (element) => `${element.tagName.toLowerCase()}#${element.id} "${(element.getAttribute("aria-label") || element.textContent).trim().slice(0, 30)}"`;
  const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && element.getClientRects().length > 0;
  // What is in front of the page, such as a menu or the reader on a phone, covers what is behind it.
  const layer = (element) => {
    for (let at = element; at; at = at.parentElement) if (["fixed", "sticky"].includes(getComputedStyle(at).position) || at.matches(".more > div")) return at;
    return document.body;
  };
  const controls = [...document.querySelectorAll("a, button, input, select, textarea, summary")]
    .filter((element) => shown(element) && !element.closest(".scroll, #source-text, .unseen, #graph-facts, #graph-nodes, .files") && element.id !== "skip");
  const boxes = controls.map((element) => element.getBoundingClientRect());
  const layers = controls.map(layer);
  controls.forEach((element, at) => {
    const box = boxes[at];
    if (box.left < 0 || box.right > innerWidth) wrong.push(`${name(element)} reaches from ${box.left} to ${box.right} of ${innerWidth}`);
    if (element.tagName === "BUTTON" && (element.scrollWidth > element.clientWidth || element.scrollHeight > element.clientHeight)) wrong.push(`${name(element)} is too small for its words`);
    for (let other = at + 1; other < controls.length; other++) {
      if (layers[at] !== layers[other]) continue;
      const wide = Math.min(box.right, boxes[other].right) - Math.max(box.left, boxes[other].left);
      const high = Math.min(box.bottom, boxes[other].bottom) - Math.max(box.top, boxes[other].top);
      if (wide > 1 && high > 1) wrong.push(`${name(element)} overlaps ${name(controls[other])}`);
    }
  });

  // Contrast as WCAG 2 has it.
  const colour = (text) => text.match(/[\d.]+/g).map(Number);
  const light = ([red, green, blue]) => {
    const [r, g, b] = [red, green, blue].map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = colour(getComputedStyle(at).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const check = (element, text, what) => {
    const [a, b] = [light(colour(text)), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) wrong.push(`${what} of ${name(element)} has a contrast of ${contrast.toFixed(2)}`);
  };
  let texts = 0;
  for (const element of document.body.querySelectorAll("*")) {
    if (!shown(element)) continue;
    const says = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()) || element.matches("input, select, textarea");
    if (!says) continue;
    texts++;
    check(element, element instanceof SVGElement ? getComputedStyle(element).fill : getComputedStyle(element).color, "text");
    if (element.placeholder) check(element, getComputedStyle(element, "::placeholder").color, "placeholder");
  }
  if (controls.length < 4 || texts < 10) wrong.push(`only ${controls.length} controls and ${texts} texts were looked at`);
  return wrong;
})()
