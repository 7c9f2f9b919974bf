// The page of a running server. All text of the server is set as text, never as markup.
"use strict";

const PLOT_SECONDS = 300;
const PAGES = ["overview", "operations", "clients", "waits", "exports", "grants", "explain"];
const OPERATIONS = ["stat", "read", "write", "execute", "list"];

const find = (id) => document.getElementById(id);
const history_of = new Map();
let load = null;

// The token comes from the form or from the fragment of the address (after the #), which browsers
// never send to a server.
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem("token", given);
  history.replaceState(null, "", "#overview");
}

function headers() {
  return { Authorization: `Bearer ${sessionStorage.getItem("token") ?? ""}` };
}

async function ask(request) {
  const body = JSON.stringify(request);
  const response = await fetch("/api/ask", { method: "POST", headers: headers(), body });
  if (response.status === 401) {
    signIn("This token is not the server's.");
  }
  if (!response.ok) {
    throw new Error(await response.text());
  }
  return response.json();
}

function element(name, text, kind) {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) {
    made.className = kind;
  }
  return made;
}

// Fills the body of a table. A cell is a text, a number as [text], or an element.
function fill(id, rows) {
  const made = rows.map(({ cells, isFull }) => {
    const row = document.createElement("tr");
    row.classList.toggle("full", Boolean(isFull));
    for (const cell of cells) {
      if (cell instanceof Element) {
        const holder = document.createElement("td");
        holder.append(cell);
        row.append(cell.tagName === "TD" ? cell : holder);
      } else {
        row.append(Array.isArray(cell) ? element("td", cell[0], "number") : element("td", cell ?? ""));
      }
    }
    return row;
  });
  find(id).tBodies[0].replaceChildren(...made);
}

function scaled(number, step, units) {
  let unit = 0;
  while (number >= step && unit + 1 < units.length) {
    number /= step;
    unit += 1;
  }
  const digits = number > 0 && number < 9.95 ? 1 : 0;
  return `${number.toFixed(digits)} ${units[unit]}`.trim();
}

const rate = (number) => scaled(number, 1000, ["", "k", "M", "G"]);
const bytes = (number) => scaled(number, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const service = (row) => row.service_seconds_per_second == null ? "-" : percent(row.service_seconds_per_second);
const percent = (ratio) => `${Math.round(ratio * 100)} %`;

function time(seconds) {
  if (seconds === null) {
    return "-";
  }
  if (seconds < 1e-3) {
    return `${Math.round(seconds * 1e6)} us`;
  }
  return seconds < 1 ? `${(seconds * 1e3).toFixed(1)} ms` : `${seconds.toFixed(1)} s`;
}

function plot(values) {
  const name = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(name, "svg");
  svg.setAttribute("class", "plot");
  svg.setAttribute("viewBox", `0 0 ${PLOT_SECONDS} 40`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${percent(values.at(-1))} now, at most ${percent(Math.max(...values))}`);
  const ground = document.createElementNS(name, "line");
  for (const [attribute, value] of [["x1", 0], ["x2", PLOT_SECONDS], ["y1", 39], ["y2", 39]]) {
    ground.setAttribute(attribute, value);
  }
  const start = PLOT_SECONDS - values.length;
  const points = values.map((value, second) => `${start + second},${(38 - value * 36).toFixed(1)}`);
  const path = document.createElementNS(name, "path");
  path.setAttribute("d", `M${points.join("L")}`);
  path.setAttribute("vector-effect", "non-scaling-stroke");
  svg.append(ground, path);
  return svg;
}

function resource(row) {
  const name = [row.resource.replaceAll("_", " "), row.device ?? ""].join(" ").trim();
  const values = history_of.get(name) ?? [];
  values.push(row.now);
  values.splice(0, values.length - PLOT_SECONDS);
  history_of.set(name, values);
  const averages = [row.second, row.minute, row.five_minutes].map((ratio) => [percent(ratio)]);
  return { cells: [name, plot(values), ...averages], isFull: row.minute >= 0.7 };
}

function fact(name, value) {
  const holder = document.createElement("div");
  holder.append(element("dt", name), element("dd", value));
  return holder;
}

function uptime(seconds) {
  const [days, hours, minutes] = [seconds / 86400, (seconds / 3600) % 24, (seconds / 60) % 60].map(Math.floor);
  return days > 0 ? `${days} d ${hours} h` : hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min`;
}

function showLoad() {
  const total = load.total;
  find("state").textContent = `version ${load.version}, up ${uptime(load.uptime_seconds)}`;
  find("verdict").textContent = load.verdict;
  find("totals").replaceChildren(
    fact("clients", String(load.clients_count)),
    fact("calls a second", rate(total.calls_per_second)),
    fact("received a second", bytes(total.received_bytes_per_second)),
    fact("sent a second", bytes(total.sent_bytes_per_second)),
    ...(load.grace_left_seconds > 0 ? [fact("grace left", `${load.grace_left_seconds} s`)] : []),
  );
  fill("resources", load.resources.map(resource));
  fill("events", load.events.map((row) => ({ cells: [row.event, [rate(row.now)], [rate(row.minute)]] })));
  find("measured").hidden = load.is_measured;
  fill("operations-table", load.operations.map((row) => ({
    cells: [
      `${row.program} v${row.version} ${row.operation}`,
      [rate(row.now)], [rate(row.minute)], [rate(row.failed)],
      [time(row.median_seconds)], [time(row.p99_seconds)],
    ],
  })));
  fill("exports-table", load.exports.map((row) => ({ cells: [row.export, [rate(row.now)], [rate(row.minute)], [service(row)]] })));
  showAddresses();
}

const has = (row, filter) => JSON.stringify(row).toLowerCase().includes(filter);

function showAddresses() {
  const filter = find("client-filter").value.toLowerCase();
  const rows = load.clients.filter((row) => has(row.client, filter));
  find("clients-note").textContent = `${rows.length} of ${load.clients_count}, those with most calls first`;
  fill("addresses", rows.map((row) => ({
    cells: [
      row.client,
      [rate(row.now.calls_per_second)], [rate(row.minute.calls_per_second)], [service(row.minute)],
      [bytes(row.now.received_bytes_per_second)], [bytes(row.now.sent_bytes_per_second)],
      [String(row.connections ?? 0)],
    ],
  })));
}

async function showClients() {
  const filter = find("client-filter").value.toLowerCase();
  const { rows, hasMore } = await matchingClients(filter);
  find("state-clients-note").textContent = hasMore ? "There are more clients than these: narrow the filter." : "";
  fill("state-clients", rows.map((row) => ({
    cells: [
      row.client, row.address, row.spoken, row.name,
      [String(row.opens)], [String(row.locks)], [String(row.delegations)], [`${row.silent_seconds} s`],
    ],
  })));
}

// The server answers with a page of clients and the number at which the next page begins. Both limits
// end the search: a longer table is of no use, and each answer costs the server time.
const CLIENT_ROWS_MAX = 500;
const CLIENT_ANSWERS_MAX = 40;

async function matchingClients(filter) {
  const rows = [];
  let after = null;
  for (let answers = 0; answers < CLIENT_ANSWERS_MAX && rows.length <= CLIENT_ROWS_MAX; answers += 1) {
    const { clients, next } = await ask({ command: "clients", after });
    rows.push(...clients.filter((row) => has(row, filter)));
    after = next;
    if (after === null) {
      break;
    }
  }
  return { rows: rows.slice(0, CLIENT_ROWS_MAX), hasMore: after !== null || rows.length > CLIENT_ROWS_MAX };
}

async function showWaits() {
  const { waits, waits_count: count } = await ask({ command: "waits", client: null });
  find("waits-note").textContent = count === 0 ? "Nobody waits." : `${waits.length} of ${count}`;
  fill("waits-table", waits.map((row) => ({
    cells: [
      row.client ?? "this server", row.waits_for ?? "this server", row.kind,
      `${row.export ?? "not exported any more"} fileid ${row.fileid ?? "?"}`, [String(row.age_seconds)],
    ],
  })));
}

async function showGrants() {
  const held = await ask({ command: "held-grants", key: null });
  fill("grants-table", held.map((row) => ({
    cells: [row.digest, row.holder, element("td", row.text, "text"), revoking(row)],
  })));
}

function revoking(row) {
  if (row.revoked) {
    return "revoked";
  }
  const button = element("button", "Revoke");
  button.addEventListener("click", () => {
    if (confirm(`Revoke ${row.digest} for everybody who rests on it?`)) {
      shown("grants-error", () => ask({ command: "revoke-grant", what: row.digest }).then(showGrants));
    }
  });
  return button;
}

// Runs something and shows why it failed.
async function shown(id, work) {
  find(id).textContent = "";
  try {
    await work();
  } catch (error) {
    find(id).textContent = error.message;
  }
}

async function explain() {
  const value = (name) => find(`explain-${name}`).value;
  find("explain-answer").textContent = "";
  fill("decisions", []);
  const told = await ask({
    command: "explain", export: value("export"), path: value("path"), from: value("from"),
    uid: Number(value("uid")), gid: Number(value("gid")), groups: [], operation: value("operation"),
  });
  find("explain-answer").textContent = `${told.status}: ${told.text}`;
  fill("decisions", told.decisions.map((row) => ({ cells: [row.about, row.text, row.place] })));
}

async function offered() {
  fill("offered", []);
  const { exports } = await ask({ command: "exports", client: find("offered-address").value });
  fill("offered", exports.map((row) => ({ cells: [row.path, row.client, row.options] })));
}

const REFRESHED = { clients: showClients, waits: showWaits };

function page() {
  const named = location.hash.slice(1);
  return PAGES.includes(named) ? named : "overview";
}

function turn() {
  const isSignedIn = Boolean(sessionStorage.getItem("token"));
  find("sign-in").hidden = isSignedIn;
  if (!isSignedIn) {
    find("state").textContent = "not signed in";
  }
  for (const name of PAGES) {
    find(name).hidden = !isSignedIn || name !== page();
  }
  for (const link of document.querySelectorAll("nav a")) {
    link.hash === `#${page()}` ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  }
  if (isSignedIn && page() === "grants") {
    shown("grants-error", showGrants);
  }
  refresh();
}

function refresh() {
  const work = sessionStorage.getItem("token") && !document.hidden && REFRESHED[page()];
  if (work) {
    work().catch((error) => { find("state").textContent = error.message; });
  }
}

function signIn(why) {
  sessionStorage.removeItem("token");
  find("token-error").textContent = why;
  turn();
}

// Reads the events of the server until they end. Events come by fetch, as an EventSource cannot
// carry the token.
async function listen() {
  const response = await fetch("/api/live", { headers: headers() });
  if (response.status === 401) {
    signIn("This token is not the server's.");
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const events = (text + part.value).split("\n\n");
    text = events.pop();
    for (const event of events.filter((line) => line.startsWith("data: "))) {
      load = JSON.parse(event.slice("data: ".length)) ?? load;
      showLoad();
    }
  }
}

async function keepListening() {
  while (sessionStorage.getItem("token")) {
    try {
      await listen();
    } catch (error) {
      find("state").textContent = `no answer from the server (${error.message}); trying again`;
    }
    await new Promise((done) => setTimeout(done, 1000));
  }
}

function on(id, work) {
  find(`${id}-form`).addEventListener("submit", (event) => {
    event.preventDefault();
    shown(`${id}-error`, work);
  });
}

find("explain-operation").replaceChildren(...OPERATIONS.map((name) => element("option", name)));
on("explain", explain);
on("offered", offered);
on("token", async () => {
  sessionStorage.setItem("token", find("token").value.trim());
  turn();
  keepListening();
});
find("client-filter").addEventListener("input", () => {
  if (load) {
    showAddresses();
  }
  refresh();
});
addEventListener("hashchange", turn);
setInterval(refresh, 2000);
turn();
keepListening();
