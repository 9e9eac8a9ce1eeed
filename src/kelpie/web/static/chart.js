// Charts: the values under the pointer, and a choice of the time by dragging. Without it, links choose the time.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const LANGUAGE = document.documentElement.lang || "en";
const UNITS = [[86400e3, "day"], [3600e3, "hour"], [60e3, "minute"], [1e3, "second"], [1, "millisecond"]];

function inWords(value, unit) {
  if (unit !== "ms") return new Intl.NumberFormat(LANGUAGE, { maximumSignificantDigits: value < 100 ? 3 : 15 }).format(value);
  const [size, name] = UNITS.find(([least]) => value >= least) || UNITS.at(-1);
  return new Intl.NumberFormat(LANGUAGE, { style: "unit", unit: name, maximumFractionDigits: 1 }).format(value / size);
}

function moment(at) {
  return new Date(at).toISOString().slice(0, 19).replace("T", " ") + " UTC";
}

function nearest(points, at) {
  let low = 0, high = points.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] < at) low = middle + 1; else high = middle;
  }
  return low > 0 && at - points[low - 1][0] < points[low][0] - at ? points[low - 1] : points[low];
}

class Chart {
  constructor(svg) {
    this.svg = svg;
    const { from, to, left, right, unit } = svg.dataset;
    Object.assign(this, { from: +from, to: +to, left: +left, right: +right, unit });
    this.lines = [...svg.querySelectorAll("path[data-points]")].map((path) => (
      { name: path.dataset.name, points: JSON.parse(path.dataset.points) }));
    this.marks = [...svg.querySelectorAll("[data-at]")].map((mark) => (
      { at: +mark.dataset.at, text: mark.dataset.text }));
    this.cursor = this.add("line", "cursor", { y1: 10, y2: 154, visibility: "hidden" });
    this.choice = this.add("rect", "choice", { y: 10, height: 144, visibility: "hidden" });
    this.words = document.createElement("p");
    this.words.className = "hover";
    this.words.setAttribute("aria-hidden", "true");
    svg.after(this.words);
    svg.addEventListener("pointermove", (event) => this.moved(event));
    svg.addEventListener("pointerdown", (event) => { if (event.button === 0 && event.pointerType === "mouse") this.begun = this.at(event); });
    svg.addEventListener("pointerleave", () => this.left_it());
    svg.addEventListener("pointerup", (event) => this.chosen(event));
  }

  add(name, kind, attributes) {
    const element = document.createElementNS(SVG, name);
    element.setAttribute("class", kind);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    this.svg.append(element);
    return element;
  }

  at(event) {
    const box = this.svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * this.svg.viewBox.baseVal.width;
    const part = (x - this.left) / (this.right - this.left);
    return this.from + Math.min(1, Math.max(0, part)) * (this.to - this.from);
  }

  x(at) {
    return this.left + (at - this.from) / (this.to - this.from) * (this.right - this.left);
  }

  moved(event) {
    const at = this.at(event);
    const found = this.lines.filter((line) => line.points.length).map((line) => [line.name, nearest(line.points, at)]);
    const near = this.marks.find((mark) => Math.abs(this.x(mark.at) - this.x(at)) < 4);
    const shown = found.length ? found[0][1][0] : at;
    const said = found.map(([name, [, value]]) => (found.length > 1 ? `${name}: ` : "") + inWords(value, this.unit));
    this.words.textContent = [moment(shown), ...said, ...(near ? [`${moment(near.at)} ${near.text}`] : [])].join(" · ");
    this.cursor.setAttribute("x1", this.x(shown));
    this.cursor.setAttribute("x2", this.x(shown));
    this.cursor.setAttribute("visibility", "visible");
    if (this.begun === undefined) return;
    const [low, high] = [Math.min(at, this.begun), Math.max(at, this.begun)];
    this.choice.setAttribute("x", this.x(low));
    this.choice.setAttribute("width", this.x(high) - this.x(low));
    this.choice.setAttribute("visibility", "visible");
  }

  left_it() {
    this.begun = undefined;
    this.words.textContent = "";
    this.cursor.setAttribute("visibility", "hidden");
    this.choice.setAttribute("visibility", "hidden");
  }

  chosen(event) {
    const [begun, at] = [this.begun, this.at(event)];
    this.begun = undefined;
    this.choice.setAttribute("visibility", "hidden");
    if (begun === undefined || Math.abs(this.x(at) - this.x(begun)) < 8) return;
    const address = new URL(location.href);
    address.searchParams.set("from", new Date(Math.min(begun, at)).toISOString());
    address.searchParams.set("to", new Date(Math.max(begun, at)).toISOString());
    location.assign(address);
  }
}

function enliven(root) {
  for (const svg of root.querySelectorAll("svg.chart[data-from]")) new Chart(svg);
}

enliven(document);
document.addEventListener("kelpie:renewed", (event) => enliven(event.target));
