// What the page knows: sections of objects by key, told by the server as one snapshot and then as what changes.

const sections = {};
const listeners = [];
const state = { token: null, heard: 0, connected: false, lastId: null, why: '' };

export const all = (section) => sections[section] || {};
export const one = (section) => sections[section]?.[''] || null;
export const get = (section, key) => sections[section]?.[key];
/** Objects with their keys, in the order of these. */
export const rows = (section) => Object.keys(all(section)).sort().map((key) => [key, sections[section][key]]);
export const now = () => Date.parse(one('now')?.at ?? 0) || 0;
export const since = (t) => (t ? Math.max(0, (now() - Date.parse(t)) / 1000) : null);
export const whenChanged = (fn) => listeners.push(fn);

let sorted = { names: [], of: null };
/** The names of the pools; their place is their colour. */
export const poolNames = () => {
  const of = sections.pools;
  const names = Object.keys(of || {});
  if (sorted.of !== of || sorted.names.length !== names.length) sorted = { of, names: names.sort() };
  return sorted.names;
};
export const poolColour = (name) => {
  const at = poolNames().indexOf(name);
  return at < 0 ? 'px' : 'p' + Math.min(at, 4);
};

/** Whether what is shown is what is: otherwise since when nothing was heard, and why. */
export const link = () => {
  const quiet = (performance.now() - state.heard) / 1000;
  const blind = one('eye')?.blind;
  if (state.connected && quiet < 15 && !blind) return { ok: true };
  return { ok: false, quiet, why: blind || state.why, begun: state.heard > 0 };
};

const headers = () => (state.token ? { authorization: 'Bearer ' + state.token } : {});
export const setToken = (token) => {
  state.token = token;
  wake?.();
};

/** Asks the server; throws an object with error, why and next. */
export async function ask(path, body) {
  const answer = await fetch(path, {
    method: body ? 'POST' : 'GET',
    headers: body ? { ...headers(), 'content-type': 'application/json' } : headers(),
    body: body ? JSON.stringify(body) : undefined,
    cache: 'no-store',
  });
  const tree = await answer.json().catch(() => ({ error: 'the answer cannot be read', why: '', next: '' }));
  if (!answer.ok) throw { code: answer.status, ...tree };
  return tree;
}

function tell(changed) {
  for (const fn of listeners) fn(changed);
}

function apply(event, tree) {
  if (event === 'snapshot') {
    for (const name of Object.keys(sections)) delete sections[name];
    Object.assign(sections, tree);
    return tell(null);
  }
  const changed = new Set();
  for (const [name, objects] of Object.entries(tree.set)) {
    sections[name] = Object.assign(sections[name] || {}, objects);
    changed.add(name);
  }
  for (const [name, keys] of Object.entries(tree.drop)) {
    for (const key of keys) delete sections[name][key];
    changed.add(name);
  }
  if (changed.has('pools')) sorted.of = null;
  tell(changed);
}

let wake = null;
const pause = (ms) =>
  new Promise((done) => {
    wake = done;
    setTimeout(done, ms);
  });

async function listen(login) {
  const abort = new AbortController();
  const watch = setInterval(() => {
    if (performance.now() - heardHere > 20000) abort.abort();
  }, 2000);
  let heardHere = performance.now();
  try {
    const answer = await fetch('api/stream', {
      headers: { ...headers(), ...(state.lastId ? { 'last-event-id': state.lastId } : {}) },
      cache: 'no-store',
      signal: abort.signal,
    });
    if (answer.status === 401 || answer.status === 403) {
      const tree = await answer.json().catch(() => ({}));
      login(tree);
      return 30000;
    }
    if (!answer.ok) throw new Error('the server answers ' + answer.status);
    login(null);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Error('the stream ended');
      heardHere = state.heard = performance.now();
      state.connected = true;
      text += value;
      let end;
      while ((end = text.indexOf('\n\n')) >= 0) {
        const lines = text.slice(0, end).split('\n');
        text = text.slice(end + 2);
        const field = (name) => lines.find((line) => line.startsWith(name + ': '))?.slice(name.length + 2);
        const [event, id, data] = [field('event'), field('id'), field('data')];
        if (!data) continue;
        apply(event, JSON.parse(data));
        state.lastId = id;
      }
    }
  } catch (error) {
    state.why = String(error?.message || error);
  } finally {
    clearInterval(watch);
    state.connected = false;
  }
  return 1000;
}

/** Listens for ever; `login` hears when a token is wanted, and null when none is. */
export async function connect(login) {
  for (let tries = 0; ; tries++) {
    const before = state.heard;
    const wait = await listen(login);
    if (state.heard > before) tries = 0;
    await pause(wait * Math.min(1 + tries, 5));
  }
}
