// Waits until the element can be used: connected, visible, enabled, at rest, and not covered by another.
async function (want) {
  const element = this.nodeType === Node.ELEMENT_NODE ? this : this.parentElement;
  const frame = () => new Promise((done) => {
    const late = setTimeout(done, 100);
    requestAnimationFrame(() => { clearTimeout(late); done(); });
  });
  const around = (node) => node.assignedSlot || node.parentNode || node.host || null;
  const named = (node) => {
    const id = node.id ? ` id="${node.id}"` : "";
    const classes = node.getAttribute("class") ? ` class="${node.getAttribute("class")}"` : "";
    return `<${node.localName}${id}${classes}>`.slice(0, 200);
  };
  const at = (x, y) => {
    let found = document.elementFromPoint(x, y);
    while (found && found.shadowRoot) {
      const inner = found.shadowRoot.elementFromPoint(x, y);
      if (!inner || inner === found) break;
      found = inner;
    }
    return found;
  };
  // The middle of the largest part that is in the viewport.
  const middle = () => {
    let best = null;
    for (const box of element.getClientRects()) {
      const left = Math.max(box.left, 0), right = Math.min(box.right, innerWidth);
      const top = Math.max(box.top, 0), bottom = Math.min(box.bottom, innerHeight);
      const area = (right - left) * (bottom - top);
      if (right > left && bottom > top && (!best || area > best.area)) {
        best = { area, x: (left + right) / 2, y: (top + bottom) / 2 };
      }
    }
    return best;
  };
  const place = () => {
    const { x, y, width, height } = element.getBoundingClientRect();
    return [x, y, width, height].join();
  };
  const check = async (again) => {
    if (!element || !element.isConnected) return { state: "gone" };
    if (element.localName === "option" || element.localName === "optgroup") return { state: "option" };
    if (want.enabled && (element.matches(":disabled") || element.closest("[aria-disabled=true]"))) {
      return { state: "disabled" };
    }
    if (want.editable && (element.readOnly || element.getAttribute("aria-readonly") === "true")) {
      return { state: "readonly" };
    }
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (style.visibility !== "visible" || !box.width || !box.height) return { state: "invisible" };
    let point = middle();
    if (!point || again) {
      element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
      point = middle();
    }
    if (!point) return { state: "outside" };
    if (want.still) {
      const before = place();
      await frame();
      if (place() !== before) return { state: "moving" };
      point = middle();
      if (!point) return { state: "outside" };
    }
    if (want.hit) {
      const top = at(point.x, point.y);
      let node = top;
      while (node && node !== element) node = around(node);
      const label = top && top.closest("label");
      if (!node && !(label && (label.control === element || label === element))) {
        return { state: "covered", by: top ? named(top) : "" };
      }
    }
    const { x, y, width, height } = element.getBoundingClientRect();
    return { state: "ready", x: point.x, y: point.y, box: [x, y, width, height] };
  };
  const end = performance.now() + want.time;
  let found = await check(false);
  while (!["ready", "gone", "option"].includes(found.state) && performance.now() < end) {
    await frame();
    found = await check(true);
  }
  return found;
}
