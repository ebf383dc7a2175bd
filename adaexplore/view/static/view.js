// The time slider, zoom, folding and keys of search trees; the page itself is made in Python.
(() => {
  "use strict";
  const states = new Map();
  const live = typeof htmx !== "undefined";
  const all = (root, selector) => [...root.querySelectorAll(selector)];
  const state = (task) => {
    if (!states.has(task.id)) states.set(task.id, { at: null, zoom: 1, folded: new Set(), focus: null, left: 0, top: 0 });
    return states.get(task.id);
  };

  function apply(task) {
    const now = state(task), slider = task.querySelector(".time"), svg = task.querySelector(".tree svg");
    if (!slider || !svg) return;
    slider.value = now.at === null ? slider.max : now.at;
    const at = Number(slider.value), shown = new Set(["0"]);
    let last = null, focused = null;
    for (const node of all(svg, ".node")) {
      const { step, parent, place } = node.dataset, link = node.querySelector("a");
      const visible = Number(place) <= at && shown.has(parent) && !now.folded.has(parent);
      if (visible) shown.add(step);
      if (Number(place) <= at) last = link;
      node.classList.toggle("off", !visible);
      node.classList.toggle("folded", now.folded.has(step));
      node.classList.toggle("chosen", chosen(link));
      link.setAttribute("tabindex", "-1");
      if (visible && (step === now.focus || focused === null)) focused = link;
    }
    for (const edge of all(svg, ".edge")) edge.classList.toggle("off", !shown.has(edge.dataset.to));
    if (focused) focused.setAttribute("tabindex", "0");
    const box = svg.viewBox.baseVal;
    svg.setAttribute("width", box.width * now.zoom);
    svg.setAttribute("height", box.height * now.zoom);
    const words = last ? last.dataset.best : "before the first step";
    task.querySelector(".when").textContent = words;
    slider.setAttribute("aria-valuetext", words);
    const cursor = task.querySelector(".cursor");
    if (cursor) {
      const x = Number(cursor.dataset.from) + at * Number(cursor.dataset.width);
      cursor.setAttribute("transform", `translate(${x} 0)`);
      cursor.style.visibility = now.at === null ? "hidden" : "visible";
    }
  }

  const chosen = (link) => (live ? location.pathname : location.hash) === link.getAttribute("href");
  const every = () => all(document, ".task").forEach(apply);

  function open(link) {
    if (!live) { location.hash = link.getAttribute("href"); return; }
    const url = link.getAttribute("href");
    history.replaceState(null, "", url);
    htmx.ajax("GET", url, { target: "#panel", select: "#panel > *", swap: "innerHTML" });
    every();
  }

  function focus(task, link) {
    if (!link) return;
    state(task).focus = link.closest(".node").dataset.step;
    apply(task);
    link.focus();
    link.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function neighbour(task, node, key) {
    const seen = all(task, ".node:not(.off)");
    if (key === "ArrowLeft") return seen.find((other) => other.dataset.step === node.dataset.parent);
    if (key === "ArrowRight") return seen.find((other) => other.dataset.parent === node.dataset.step);
    if (key === "Home") return seen[0];
    if (key === "End") return seen[seen.length - 1];
    const row = (other) => other.getBoundingClientRect().top, ordered = seen.sort((a, b) => row(a) - row(b) || a.dataset.place - b.dataset.place);
    return ordered[ordered.indexOf(node) + (key === "ArrowDown" ? 1 : -1)];
  }

  function zoom(task, factor) {
    state(task).zoom = Math.min(4, Math.max(0.15, state(task).zoom * factor));
    apply(task);
  }

  document.addEventListener("input", (event) => {
    const slider = event.target.closest(".time");
    if (!slider) return;
    const task = slider.closest(".task");
    state(task).at = slider.value === slider.max ? null : Number(slider.value);
    apply(task);
  });

  document.addEventListener("click", (event) => {
    const task = event.target.closest(".task"), button = event.target.closest("[data-act]"), link = event.target.closest(".node a");
    if (task && button) {
      if (button.dataset.act === "unfold") { state(task).folded.clear(); apply(task); }
      else zoom(task, button.dataset.act === "in" ? 1.25 : 0.8);
    } else if (task && link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      focus(task, link);
      open(link);
    }
  });

  document.addEventListener("keydown", (event) => {
    const task = event.target.closest(".task");
    if (!task || event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey) return;
    const node = event.target.closest(".node");
    if (event.key === "+" || event.key === "-") zoom(task, event.key === "+" ? 1.25 : 0.8);
    else if (node && event.key === " ") {
      const folded = state(task).folded, step = node.dataset.step;
      if (!folded.delete(step)) folded.add(step);
      apply(task);
    } else if (node && event.key === "Enter") open(node.querySelector("a"));
    else if (node && /^(Arrow|Home|End)/.test(event.key)) {
      const next = neighbour(task, node, event.key);
      if (next) focus(task, next.querySelector("a"));
    } else return;
    event.preventDefault();
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.target.id !== "live") return;
    for (const task of all(document, ".task")) {
      const tree = task.querySelector(".tree"), now = state(task);
      [now.left, now.top] = [tree.scrollLeft, tree.scrollTop];
      now.refocus = tree.contains(document.activeElement);
      now.sliding = document.activeElement.matches(".time");
    }
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    every();
    if (event.target.id !== "live") return;
    for (const task of all(document, ".task")) {
      const tree = task.querySelector(".tree"), now = state(task);
      [tree.scrollLeft, tree.scrollTop] = [now.left, now.top];
      if (now.refocus) (tree.querySelector(".node a[tabindex='0']") || tree).focus({ preventScroll: true });
      if (now.sliding) task.querySelector(".time").focus({ preventScroll: true });
      now.refocus = now.sliding = false;
    }
  });
  const start = () => {
    every();
    const node = all(document, ".node.chosen")[0];
    if (node && live) node.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  window.addEventListener("hashchange", every);
  start();
})();
