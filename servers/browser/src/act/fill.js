// Prepares a field for text: focused, with everything in it selected; or sets the value of a field that takes none.
function (value) {
  let field = this.nodeType === Node.ELEMENT_NODE ? this : this.parentElement;
  if (field instanceof HTMLLabelElement && field.control) field = field.control;
  if (!field || !field.isConnected) return { state: "gone" };
  if (field instanceof HTMLInputElement) {
    if (["checkbox", "radio", "file", "button", "submit", "reset", "image", "hidden"].includes(field.type)) {
      return { state: "refused", type: field.type };
    }
    if (["date", "time", "datetime-local", "month", "week", "color", "range"].includes(field.type)) {
      field.focus();
      const before = field.value;
      field.value = value;
      const wanted = field.type === "color" ? value.trim().toLowerCase() : value.trim();
      const took = field.type === "range" ? Number(field.value) === Number(wanted) : field.value === wanted;
      if (!took) {
        field.value = before;
        return { state: "invalid", type: field.type };
      }
      field.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
      field.dispatchEvent(new Event("change", { bubbles: true }));
      return { state: "set" };
    }
  } else if (field instanceof HTMLSelectElement) {
    return { state: "refused", type: "select" };
  } else if (!(field instanceof HTMLTextAreaElement) && !field.isContentEditable) {
    return { state: "refused", type: field.localName };
  }
  field.focus();
  if (typeof field.select === "function") {
    field.select();
  } else {
    const all = document.createRange();
    all.selectNodeContents(field);
    const selection = field.ownerDocument.getSelection();
    selection.removeAllRanges();
    selection.addRange(all);
  }
  const empty = field.isContentEditable && !("value" in field) ? !field.textContent : !field.value;
  return { state: "selected", empty };
}
