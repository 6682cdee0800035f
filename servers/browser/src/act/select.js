// Selects options of a <select> by value or by label.
function (values) {
  let field = this.nodeType === Node.ELEMENT_NODE ? this : this.parentElement;
  if (field instanceof HTMLLabelElement && field.control) field = field.control;
  if (!field || !field.isConnected) return { state: "gone" };
  if (!(field instanceof HTMLSelectElement)) return { state: "refused" };
  const clean = (text) => text.replace(/\s+/g, " ").trim();
  const options = [...field.options];
  const known = () => options.slice(0, 50).map((option) => clean(option.label).slice(0, 100) || option.value);
  const find = (value) => options.find((option) => option.value === value)
    || options.find((option) => clean(option.label) === clean(value));
  const found = values.map(find);
  const missing = values.filter((_, index) => !found[index]);
  if (missing.length) return { state: "missing", missing, options: known() };
  if (found.some((option) => option.disabled || option.closest("optgroup:disabled"))) {
    return { state: "disabled", options: known() };
  }
  if (!field.multiple && found.length !== 1) return { state: "single" };
  field.focus();
  for (const option of options) option.selected = found.includes(option);
  field.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  field.dispatchEvent(new Event("change", { bubbles: true }));
  return { state: "selected" };
}
