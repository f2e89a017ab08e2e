// The graph of a corpus: a picture that is zoomed and moved, and beside it the list of its nodes with their facts.

import { $, brief, button, counted, el, get, path, tell } from "./core.js";
import { openDocument } from "./source.js";

const SHORT = 28;
const NAMED = 40;
const LISTED = 100;

/** Nodes of a picture: those with the most relations. */
const MOST_NODES = 3000;

/** The relations of a node with at most this number of them are named in the picture. */
const RELATIONS_NAMED = 12;
const STEPS = 150;

/** Hues of the largest communities, with the lightness of the theme. */
const HUES = [215, 150, 30, 280, 350, 95, 185, 255, 55, 320];

/** Forms of nodes: communities beyond the first ten have their hues again in the next form; beyond 40 they have neither. */
const FORMS = ["circle", "square", "diamond", "triangle"];

const BY_MEMCOT = "It is built by memlocal ask with --method memcot --memcot-store lightrag.";

let graph = null;
let view = { x: 0, y: 0, scale: 1 };
let selected = null;

export function readyGraph() {
  $("graph-form").onsubmit = (event) => { event.preventDefault(); tell(load)(); };
  $("graph-find").oninput = () => { list(); draw(); };
  $("graph-all").onclick = () => { select(null); $("graph-find").focus(); };
  $("graph-in").onclick = () => zoom(1.4);
  $("graph-out").onclick = () => zoom(1 / 1.4);
  $("graph-fit").onclick = () => { fit(); draw(); };
  const picture = $("graph-picture");
  picture.onkeydown = (event) => {
    const move = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
    if (move) { view.x += move[0]; view.y += move[1]; draw(); }
    else if (event.key === "+" || event.key === "=") zoom(1.4);
    else if (event.key === "-") zoom(1 / 1.4);
    else if (event.key === "0") { fit(); draw(); }
    else return;
    event.preventDefault();
  };
  picture.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
  }, { passive: false });
  const fingers = new Map();
  let moved = 0;
  picture.onpointerdown = (event) => {
    picture.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event);
    moved = 0;
  };
  picture.onpointermove = (event) => {
    const last = fingers.get(event.pointerId);
    if (!last) return;
    const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, finger]) => finger);
    if (other) {
      const apart = (finger) => Math.hypot(finger.offsetX - other.offsetX, finger.offsetY - other.offsetY);
      zoom(apart(event) / Math.max(apart(last), 1), other.offsetX, other.offsetY);
    } else {
      view.x += event.offsetX - last.offsetX;
      view.y += event.offsetY - last.offsetY;
    }
    moved += Math.abs(event.offsetX - last.offsetX) + Math.abs(event.offsetY - last.offsetY);
    fingers.set(event.pointerId, event);
    draw();
  };
  picture.onpointerup = (event) => {
    fingers.delete(event.pointerId);
    if (moved < 6) select(nearest(event.offsetX, event.offsetY));
  };
  picture.onpointercancel = (event) => fingers.delete(event.pointerId);
  new ResizeObserver(() => { if (graph && picture.clientWidth) { fit(); draw(); } }).observe($("graph-frame"));
  // The colours of the picture are those of the theme.
  new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

/** Shows the graph of the corpus, unless it is shown already. */
export async function openGraph() {
  if (!graph) await load();
}

export function forgetGraph() {
  graph = selected = null;
  $("graph-area").hidden = true;
  $("graph-size").textContent = "";
}

async function load() {
  const kind = $("graph-kind").value;
  const query = new URLSearchParams({ graph: kind, limit: MOST_NODES });
  const question = $("graph-question").value.trim();
  if (question) query.set("question", question);
  const found = await get(path(`/graph?${query}`));
  const read = found.read < found.of ? `; ${found.read} of ${counted(found.of, "passage")} have been processed` : "";
  const rest = found.all_nodes > found.nodes.length ? ` with the most relations (of ${found.all_nodes.toLocaleString("en")})` : "";
  $("graph-size").textContent = found.nodes.length
    ? `${counted(found.nodes.length, "node")}${rest}, ${counted(found.edges.length, "relation")}${read}`
    : `This graph does not exist yet${read}. ${kind === "lightrag" ? BY_MEMCOT : `Ask a question with the method ${kind} (Advanced) to build it.`}`;
  $("graph-size").className = found.nodes.length ? "small" : "lead";
  $("graph-area").hidden = !found.nodes.length;
  if (!found.nodes.length) return;
  graph = arrange(found);
  selected = null;
  $("graph-find").value = "";
  $("graph-about").hidden = true;
  fit();
  list();
  draw();
}

// Adds communities, neighbours and places. It starts the same way each time, so a graph always looks the same.
function arrange({ nodes, edges }) {
  nodes = [...nodes].sort((a, b) => b.degree - a.degree || a.id.localeCompare(b.id, undefined, { numeric: true })).map((node, rank) => ({ ...node, rank, near: [], community: rank }));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const links = edges.map((edge) => ({ ...edge, from: byId.get(edge.source), to: byId.get(edge.target) })).filter(({ from, to }) => from && to);
  for (const { from, to } of links) if (from !== to) { from.near.push(to); to.near.push(from); }
  communities(nodes);
  places(nodes, links.filter(({ from, to }) => from !== to));
  return { nodes, links, byId };
}

// Label propagation: each node joins the community of most of its neighbours.
function communities(nodes) {
  for (let round = 0; round < 12; round++) {
    let changes = 0;
    for (const node of nodes) {
      const votes = new Map();
      for (const { community } of node.near) votes.set(community, (votes.get(community) ?? 0) + 1);
      let [best, most] = [node.community, votes.get(node.community) ?? 0];
      for (const [community, count] of votes) if (count > most || (count === most && community < best)) [best, most] = [community, count];
      if (best !== node.community) { node.community = best; changes++; }
    }
    if (!changes) break;
  }
  const sizes = new Map();
  for (const { community } of nodes) sizes.set(community, (sizes.get(community) ?? 0) + 1);
  const order = [...sizes].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([community]) => community);
  for (const node of nodes) node.group = order.indexOf(node.community);
}

// Force-directed, with repulsion between nodes of neighbouring cells only, so that it is linear in the nodes.
function places(nodes, links) {
  const rest = 60;
  const turn = Math.PI * (3 - Math.sqrt(5));
  const spread = rest * Math.sqrt(nodes.length) * 0.8;
  const groups = 1 + Math.max(...nodes.map((node) => node.group));
  const seen = new Map();
  for (const node of nodes) {
    const index = seen.get(node.group) ?? 0;
    seen.set(node.group, index + 1);
    const [far, angle] = [spread * Math.sqrt(node.group / groups), node.group * turn];
    const [near, own] = [rest * 0.8 * Math.sqrt(index), index * turn];
    node.x = far * Math.cos(angle) + near * Math.cos(own);
    node.y = far * Math.sin(angle) + near * Math.sin(own);
  }
  for (let step = 0; step < STEPS; step++) {
    const cells = new Map();
    const reach = rest * 2.5;
    for (const node of nodes) {
      node.dx = -node.x * 0.01;
      node.dy = -node.y * 0.01;
      const cell = `${Math.floor(node.x / reach)},${Math.floor(node.y / reach)}`;
      if (!cells.has(cell)) cells.set(cell, []);
      cells.get(cell).push(node);
    }
    for (const node of nodes) {
      const [column, row] = [Math.floor(node.x / reach), Math.floor(node.y / reach)];
      for (let i = -1; i <= 1; i++) for (let j = -1; j <= 1; j++) {
        for (const other of cells.get(`${column + i},${row + j}`) ?? []) {
          if (other === node) continue;
          const [x, y] = [node.x - other.x || 0.1 * (node.rank - other.rank), node.y - other.y || 0.1];
          const far = Math.max(x * x + y * y, 1);
          if (far > reach * reach) continue;
          const push = (rest * rest) / far;
          node.dx += x * push * 0.5;
          node.dy += y * push * 0.5;
        }
      }
    }
    for (const { from, to } of links) {
      const [x, y] = [to.x - from.x, to.y - from.y];
      const far = Math.hypot(x, y) || 1;
      // A node with many relations is not torn by each of them.
      const pull = ((far - rest * 1.4) / far) * 0.5 / Math.sqrt(Math.max(from.near.length, to.near.length));
      from.dx += x * pull; from.dy += y * pull;
      to.dx -= x * pull; to.dy -= y * pull;
    }
    const most = rest * 0.8 * (1 - step / STEPS);
    for (const node of nodes) {
      const far = Math.hypot(node.dx, node.dy) || 1;
      node.x += (node.dx / far) * Math.min(far, most);
      node.y += (node.dy / far) * Math.min(far, most);
    }
  }
}

const hasHue = (node) => node.near.length > 0 && node.group < HUES.length * FORMS.length;
const hue = (node) => node.group % HUES.length;
const form = (node) => (hasHue(node) ? FORMS[Math.floor(node.group / HUES.length)] : "circle");

// The corners of a form around its centre, in radii, with about the area of the circle.
const CORNERS = {
  square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  diamond: [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]],
  triangle: [[0, -1.4], [1.3, 0.9], [-1.3, 0.9]],
};

function outline(pen, [x, y], size, corners) {
  pen.beginPath();
  if (!corners) return pen.arc(x, y, size, 0, 2 * Math.PI);
  for (const [right, down] of corners) pen.lineTo(x + right * size, y + down * size);
  pen.closePath();
}
const radius = (node) => 4 + 2 * Math.min(Math.sqrt(node.degree), 7);

function fit(nodes = graph.nodes) {
  const { clientWidth: width, clientHeight: height } = $("graph-picture");
  const [left, right] = [Math.min(...nodes.map((node) => node.x)), Math.max(...nodes.map((node) => node.x))];
  const [top, bottom] = [Math.min(...nodes.map((node) => node.y)), Math.max(...nodes.map((node) => node.y))];
  const scale = Math.min((width - Math.min(120, width / 5)) / Math.max(right - left, 1), (height - 80) / Math.max(bottom - top, 1), 2.5);
  view = { scale: Math.max(scale, 0.02), x: 0, y: 0 };
  view.x = width / 2 - ((left + right) / 2) * view.scale;
  view.y = height / 2 - ((top + bottom) / 2) * view.scale;
}

function zoom(by, x = $("graph-picture").clientWidth / 2, y = $("graph-picture").clientHeight / 2) {
  const scale = Math.min(Math.max(view.scale * by, 0.02), 8);
  view.x = x - ((x - view.x) / view.scale) * scale;
  view.y = y - ((y - view.y) / view.scale) * scale;
  view.scale = scale;
  draw();
}

function nearest(x, y) {
  let [best, least] = [null, Infinity];
  for (const node of graph.nodes) {
    const far = Math.hypot(node.x * view.scale + view.x - x, node.y * view.scale + view.y - y);
    if (far < least && far < radius(node) + 8) [best, least] = [node, far];
  }
  return best;
}

const wanted = () => $("graph-find").value.trim().toLowerCase();
const matches = (node) => `${node.id}\n${node.type}\n${node.content}`.toLowerCase().includes(wanted());

function draw() {
  const picture = $("graph-picture");
  const { clientWidth: width, clientHeight: height } = picture;
  if (!graph || !width) return;
  const dense = devicePixelRatio || 1;
  if (picture.width !== Math.round(width * dense) || picture.height !== Math.round(height * dense)) {
    picture.width = Math.round(width * dense);
    picture.height = Math.round(height * dense);
  }
  const style = getComputedStyle(picture);
  const [ink, paper, line] = [style.color, style.backgroundColor, style.borderTopColor];
  const isDark = Number(/\d+/.exec(paper)[0]) < 128;
  const pen = picture.getContext("2d");
  pen.setTransform(dense, 0, 0, dense, 0, 0);
  pen.clearRect(0, 0, width, height);
  const at = (node) => [node.x * view.scale + view.x, node.y * view.scale + view.y];
  const near = selected && new Set([selected, ...selected.near]);
  const isBright = (node) => (near ? near.has(node) : !wanted() || matches(node));
  for (const { from, to } of graph.links) {
    const isNear = selected && (from === selected || to === selected);
    pen.strokeStyle = isNear ? ink : line;
    pen.globalAlpha = isNear ? (selected.near.length > RELATIONS_NAMED ? 0.35 : 0.8) : near ? 0.15 : 0.5;
    pen.lineWidth = isNear && selected.near.length <= RELATIONS_NAMED ? 1.5 : 1;
    pen.beginPath();
    pen.moveTo(...at(from));
    pen.lineTo(...at(to));
    pen.stroke();
  }
  const size = (node) => Math.max(radius(node) * Math.min(1, Math.sqrt(view.scale)), 2);
  for (const node of graph.nodes) {
    pen.globalAlpha = isBright(node) ? 1 : 0.15;
    pen.fillStyle = hasHue(node) ? `hsl(${HUES[hue(node)]} 60% ${isDark ? 65 : 45}%)` : `hsl(220 4% ${isDark ? 50 : 62}%)`;
    outline(pen, at(node), size(node), CORNERS[form(node)]);
    pen.fill();
    if (node === selected) {
      pen.strokeStyle = ink;
      pen.lineWidth = 2.5;
      pen.stroke();
    }
  }
  // Labels by rank, where there is room.
  pen.globalAlpha = 1;
  pen.textAlign = "center";
  const boxes = [];
  const names = [...new Set([...(near ?? []), ...graph.nodes])].filter(isBright);
  let count = 0;
  for (const node of names) {
    const [x, y] = at(node);
    if (x < 0 || y < 0 || x > width || y > height) continue;
    pen.font = `${node === selected ? 600 : 400} 13px system-ui, sans-serif`;
    const text = brief(node.id, SHORT);
    const half = pen.measureText(text).width / 2 + 3;
    const below = y + size(node) + 15;
    const box = [x - half, below - 13, x + half, below + 4];
    if (boxes.some(([left, top, right, bottom]) => box[0] < right && box[2] > left && box[1] < bottom && box[3] > top)) continue;
    boxes.push(box);
    pen.lineWidth = 4;
    pen.lineJoin = "round";
    pen.strokeStyle = paper;
    pen.strokeText(text, x, below);
    pen.fillStyle = ink;
    pen.fillText(text, x, below);
    if (++count >= NAMED * Math.max(1, view.scale)) break;
  }
  picture.dataset.labels = count;
  nameRelations(pen, at, paper, ink);
}

// What relates the selected node to its neighbours, if they are few.
function nameRelations(pen, at, paper, ink) {
  const links = selected ? graph.links.filter(({ from, to }) => from !== to && (from === selected || to === selected)) : [];
  if (links.length > RELATIONS_NAMED) return;
  pen.font = "italic 12px system-ui, sans-serif";
  for (const { from, to, relation } of links) {
    const [[x, y], [otherX, otherY]] = [at(from), at(to)];
    const place = [brief(relation, SHORT), (x + otherX) / 2, (y + otherY) / 2 + 4];
    const wide = pen.measureText(place[0]).width + 6;
    pen.fillStyle = paper;
    pen.fillRect(place[1] - wide / 2, place[2] - 13, wide, 18);
    pen.fillStyle = ink;
    pen.fillText(...place);
  }
}

// The nodes with most relations first; those that match what is looked for.
function list() {
  const found = graph.nodes.filter(matches);
  const shown = found.slice(0, LISTED);
  $("graph-nodes").replaceChildren(...shown.map((node) => el("li", {}, button("", () => { select(node); }, { className: "node", "aria-pressed": String(node === selected) }))));
  [...$("graph-nodes").querySelectorAll("button")].forEach((one, at) => {
    const dot = el("span", { className: `dot ${form(shown[at])} group-${hasHue(shown[at]) ? hue(shown[at]) : "other"}` });
    one.append(dot, el("span", {}, shown[at].id), el("span", { className: "small" }, counted(shown[at].degree, "relation")));
  });
  if (found.length > shown.length) $("graph-nodes").append(el("li", { className: "small" }, `${found.length - shown.length} more: find them by name.`));
  if (!found.length) $("graph-nodes").append(el("li", { className: "small" }, "No node has this in it."));
}

function select(node) {
  selected = node;
  // Lists are made anew; the keyboard stays where it was.
  const inNodes = $("graph-nodes").contains(document.activeElement);
  const inFacts = $("graph-facts").contains(document.activeElement);
  if (node) {
    const [x, y] = [node.x * view.scale + view.x, node.y * view.scale + view.y];
    const { clientWidth: width, clientHeight: height } = $("graph-picture");
    if (x < 20 || y < 20 || x > width - 20 || y > height - 20) {
      view.x += width / 2 - x;
      view.y += height / 2 - y;
    }
  }
  describe(node);
  list();
  draw();
  if (node) $("graph-about").scrollIntoView({ block: "nearest" });
  if (inNodes) $("graph-nodes").querySelector('[aria-pressed="true"]')?.focus();
  if (inFacts) $("graph-node").focus();
}

// The facts about the selected node, each with its sources.
function describe(node) {
  $("graph-about").hidden = !node;
  if (!node) return;
  $("graph-node").textContent = `${node.id} (${node.type})`;
  $("graph-content").textContent = node.content || "";
  const lines = node.sources.length ? [fact(["named in"], node.sources)] : [];
  for (const { from, to, relation, sources } of graph.links) {
    if (from !== node && to !== node) continue;
    const away = from === node;
    const other = away ? to : from;
    const link = button(other.id, () => select(other), { className: "link" });
    lines.push(fact(away ? [`${relation} → `, link] : [link, ` ${relation} → ${node.id}`], sources));
  }
  $("graph-facts").replaceChildren(...lines);
}

function fact(words, sources) {
  const line = el("li", {}, ...words);
  for (const source of sources) {
    if (source.start === undefined) line.append(el("span", { className: "small" }, ` ${source.path}, source not found`));
    else {
      line.append(" ", button(source.path, tell(() => openDocument(source.document, source.start, source.end)), {
        className: "place", title: source.match === "exact" ? undefined : source.match, "aria-label": `Source: ${source.path}, characters ${source.start} to ${source.end}`,
      }));
    }
  }
  return line;
}
