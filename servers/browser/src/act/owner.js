// Where a point of an iframe's document is in the document around it, and whether the iframe is what is there.
function (point) {
  const box = this.getBoundingClientRect();
  const style = getComputedStyle(this);
  const x = box.left + this.clientLeft + parseFloat(style.paddingLeft) + point[0];
  const y = box.top + this.clientTop + parseFloat(style.paddingTop) + point[1];
  let found = document.elementFromPoint(x, y);
  while (found && found !== this && found.shadowRoot) {
    const inner = found.shadowRoot.elementFromPoint(x, y);
    if (!inner || inner === found) break;
    found = inner;
  }
  return { x, y, hit: found === this };
}
