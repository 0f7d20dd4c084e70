// The page in a real browser: every view, at some nodes and at 2,000, by mouse and by keyboard, with nothing that the
// policy forbids. Run by `cargo xtask browser`: node page.mjs BINARY DIRECTORY [WORD]

import assert from 'node:assert/strict';
import path from 'node:path';
import { dump, get, hurried, launch, look, post, raw, start, until } from './harness.mjs';

const [binary, directory, word = ''] = process.argv.slice(2);
const VIEWS = [
  ['overview', 'Overview'],
  ['fleet', 'Fleet'],
  ['pending', 'Pending'],
  ['decisions', 'Decisions'],
  ['pools', 'NodePools'],
  ['whatif', 'What if'],
];
const MANY = 2000;
const usd = (x) => '$' + new Intl.NumberFormat('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 }).format(x);
const whole = (x) => new Intl.NumberFormat('en-US').format(x);
const text = (page, selector) => page.locator(selector).first().innerText();
const tests = [];
const test = (name, run) => tests.push([name, run]);
let browser, demo, many;

/** A demo with some nodes, whose time stands still from now on. */
async function settled() {
  demo ??= await start(binary, ['demo', '--speed', '60x', '--kubeconfig', path.join(directory, 'kubeconfig')]);
  const seen = await look(browser, demo.url);
  await post(demo.url, '/api/demo/speed', { argument: 60 });
  await until('nodes come', async () => {
    const doc = await get(demo.url, '/api/document');
    const { fleet, pods } = doc.now[''];
    // A pod that fits nowhere waits for good.
    return fleet.nodes >= 8 && fleet.launching === 0 && pods.pending <= 1 && doc.money;
  });
  await post(demo.url, '/api/demo/speed', { argument: 0 });
  await until('time stands still', async () => {
    const [a, b] = [await get(demo.url, '/api/document'), await new Promise((done) => setTimeout(done, 1500)).then(() => get(demo.url, '/api/document'))];
    return a.now[''].at === b.now[''].at;
  });
  return { ...seen, doc: await get(demo.url, '/api/document') };
}
async function large() {
  if (!many) {
    const file = path.join(directory, 'many.json');
    dump(file, MANY, 10);
    many = await start(binary, ['page', '--from', file], 900000);
  }
  return many;
}
/** Waits until the page shows what the document says. */
const shows = (page, selector, expected) => until(`${selector} shows ${expected}`, async () => (await text(page, selector)).trim() === String(expected));

test('each view opens, and its figures are those of the document', async () => {
  const { page, doc, faults, close } = await settled();
  const N = doc.now[''];
  for (const [id, title] of VIEWS) {
    await page.goto(`${demo.url}/#${id}`);
    await page.locator('main h1', { hasText: title }).waitFor({ state: 'attached' });
    assert.equal(await page.locator('nav a[aria-current=page] .lbl').innerText(), title);
    await shows(page, '#one-nodes', whole(N.fleet.nodes));
    await shows(page, '#one-pods', whole(N.pods.running));
    await shows(page, '#one-pending', whole(N.pods.pending));
    await shows(page, '#one-spend', usd(N.spend_usd_h));
  }
  await page.goto(`${demo.url}/#overview`);
  await shows(page, '#spend', usd(N.spend_usd_h) + '/h');
  // It is worked out seldom, and may be while this is read.
  await until('the lower bound is that of the document', async () => (await text(page, 'main')).includes(`${usd((await get(demo.url, '/api/document')).money[''].bound_usd_h)}/h`));
  for (const [name, pool] of Object.entries(doc.pools)) {
    const row = page.locator('tr', { has: page.locator(`a[href="#pools/${name}"]`) });
    assert.ok((await row.innerText()).includes(usd(pool.spend_usd_h)), name);
  }
  await page.goto(`${demo.url}/#fleet`);
  await until('a tile for each node', async () => (await page.locator('.tile').count()) === Object.keys(doc.nodes).length);
  await page.goto(`${demo.url}/#decisions`);
  await until('a row for each decision', async () => (await page.locator('button.drow').count()) === Math.min(100, Object.keys(doc.decisions).length));
  await page.goto(`${demo.url}/#pools`);
  for (const name of Object.keys(doc.pools)) {
    const pool = doc.pools[name];
    const card = await page.locator(`#pool-${name}`).innerText();
    assert.ok(card.includes(`${usd(pool.spend_usd_h)}/h`), name);
    for (const limit of pool.limits) assert.ok(card.replace(/\s+/g, ' ').includes(`${limit.used} of ${limit.limit}`), `${name} ${limit.resource}`);
    for (const reason of doc.budgets[name].reasons) assert.ok(card.includes(`now ${reason.now ?? 'all'}`), `${name} ${reason.reason}`);
  }
  assert.deepEqual(await faults(), []);
  await close();
});

test('a node explains itself as the command line does', async () => {
  const { page, doc, faults, close } = await settled();
  const name = Object.keys(doc.nodes).find((node) => doc.nodes[node].managed && doc.nodes[node].pool === 'data');
  const why = await get(demo.url, '/api/why/node/' + name);
  await page.goto(`${demo.url}/#fleet/${name}`);
  const panel = page.locator('#panel');
  await panel.locator('h3', { hasText: 'What if removed' }).waitFor();
  const said = await panel.innerText();
  assert.equal(why.node.name, name);
  assert.ok(why.stays.length > 0 || why.goes, 'it stays for a reason, or goes');
  if (!why.goes) assert.ok(said.toLowerCase().includes(why.stays[0].text.toLowerCase()), said);
  assert.ok(said.includes(`Pods (${why.pods.length})`));
  for (const pod of why.pods) assert.ok(said.includes(pod.pod.split('/')[1]), pod.pod);
  await page.keyboard.press('Escape');
  await panel.waitFor({ state: 'hidden' });
  assert.deepEqual(await faults(), []);
  await close();
});

test('a decision says why, what else was possible and what it was decided on', async () => {
  const { page, doc, faults, close } = await settled();
  const [id, row] = Object.entries(doc.decisions).find(([, decision]) => decision.kind === 'launch');
  const why = await get(demo.url, '/api/decision/' + id);
  await page.goto(`${demo.url}/#decisions/${id}`);
  await page.locator(`#b-${id} h3`, { hasText: 'Decided on' }).waitFor();
  const said = await text(page, `#b-${id}`);
  assert.ok(said.includes(why.inputs.digest) && said.includes(`dovetail why ${id.slice(0, 6)}`));
  if (why.chosen) assert.ok(said.includes(why.chosen.offer), why.chosen.offer);
  assert.ok((await text(page, `#d-${id}`)).toLowerCase().includes(row.what.toLowerCase()));
  assert.deepEqual(await faults(), []);
  await close();
});

test('everything can be reached by keyboard', async () => {
  const { page, faults, close } = await settled();
  for (const [at, [id]] of VIEWS.entries()) {
    await page.keyboard.press(String(at + 1));
    await page.locator(`nav a[href="#${id}"][aria-current=page]`).waitFor();
  }
  await page.keyboard.press('?');
  assert.ok(await page.locator('#keys').evaluate((dialog) => dialog.open));
  await page.keyboard.press('Escape');
  assert.ok(!(await page.locator('#keys').evaluate((dialog) => dialog.open)));
  await page.keyboard.press('2');
  await page.locator('.tile[tabindex="0"]').focus();
  const first = await page.evaluate(() => document.activeElement.dataset.n);
  await page.keyboard.press('ArrowRight');
  const second = await page.evaluate(() => document.activeElement.dataset.n);
  assert.ok(first && second && first !== second, `${first} ${second}`);
  await page.keyboard.press('Enter');
  await page.locator('#panel h2', { hasText: second }).waitFor();
  assert.ok(page.url().endsWith('#fleet/' + second), page.url());
  await page.keyboard.press('Escape');
  await until('the focus is back on the node', () => page.evaluate((name) => document.activeElement.dataset.n === name, second));
  await page.keyboard.press('c');
  await until('colours are by capacity', async () => (await text(page, '.seg[aria-label="Colour by"] [aria-pressed=true]')) === 'Capacity');
  await page.keyboard.press('z');
  await until('pods are shown', async () => (await text(page, '.seg[aria-label=Zoom] [aria-pressed=true]')) === 'Pods');
  await page.keyboard.press('/');
  await page.keyboard.type('postgres'.slice(0, 1));
  await page.locator('#hits li').first().waitFor();
  await page.keyboard.press('Escape');
  // A quick hand: both keys before the next frame.
  await page.evaluate(() => ['4', 'j'].forEach((key) => document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))));
  assert.equal(await page.evaluate(() => document.activeElement.className), 'drow');
  await page.keyboard.press('Enter');
  await page.locator('button.drow[aria-expanded=true]').waitFor();
  const before = await page.evaluate(() => document.documentElement.dataset.theme);
  await page.keyboard.press('t');
  await until('the theme is another', async () => (await page.evaluate(() => document.documentElement.dataset.theme)) !== before);
  assert.deepEqual(await faults(), []);
  await close();
});

test('every control has a name, every picture says what it shows, and no id is there twice', async () => {
  const { page, close } = await settled();
  for (const [id] of VIEWS) {
    await page.goto(`${demo.url}/#${id}`);
    await page.locator('main h1').waitFor({ state: 'attached' });
    const wrong = await page.evaluate(() => {
      const found = [];
      const named = (el) => el.getAttribute('aria-label') || el.innerText?.trim() || el.labels?.length || el.title;
      for (const el of document.querySelectorAll('button, a, select, input')) if (!el.closest('[hidden]') && !named(el)) found.push(el.outerHTML.slice(0, 120));
      for (const el of document.querySelectorAll('main svg')) if (el.getAttribute('aria-hidden') !== 'true' && !el.closest('svg svg, g') && !el.getAttribute('aria-label')) found.push(el.outerHTML.slice(0, 120));
      const ids = [...document.querySelectorAll('[id]')].map((el) => el.id);
      return [...found, ...ids.filter((one, at) => ids.indexOf(one) !== at)];
    });
    assert.deepEqual(wrong, [], id);
  }
  await close();
});

test('a what-if on the page is the what-if of the command line', async () => {
  const { page, doc, faults, close } = await settled();
  await page.goto(`${demo.url}/#whatif/zone`);
  const zone = Object.values(doc.nodes).map((node) => node.zone).sort()[0];
  await page.locator('select[aria-label=Zone]').selectOption(zone);
  await page.locator('button[type=submit]', { hasText: 'Ask the planner' }).click();
  await page.locator('.slats').waitFor();
  const answer = await post(demo.url, '/api/whatif', { zone_down: [zone] });
  const said = (await text(page, '.res')).replace(/\s+/g, ' ');
  assert.ok(said.includes(`${usd(answer.after.spend_usd_h)}/h`), said);
  assert.ok(said.includes(`Pods moved - ${whole(answer.moved.length)}`), said);
  assert.equal(await page.locator('.strip').first().locator('i.out').count(), answer.removed_nodes.length);
  assert.ok((await text(page, '.cli pre')).includes(`dovetail whatif --zone-down=${zone}`));
  const wrong = await post(demo.url, '/api/whatif', { zone_down: ['moon'] });
  assert.ok(wrong.error && wrong.next, JSON.stringify(wrong));
  assert.deepEqual(await faults(), []);
  await close();
});

test('what is done to the demo is seen to happen, from the button to the node', async () => {
  const { page, doc, faults, close } = await settled();
  const before = doc.now[''];
  await page.goto(`${demo.url}/#overview`);
  await page.locator('[data-act=scale-out]').click();
  await page.locator('[data-act=impossible-pod]').click();
  await post(demo.url, '/api/demo/speed', { argument: 60 });
  await until('more pods run', async () => (await get(demo.url, '/api/document')).now[''].pods.running > before.pods.running);
  await page.goto(`${demo.url}/#pending`);
  await until('the impossible pod is explained', async () => (await page.locator('.plist button', { hasText: 'impossible' }).count()) > 0);
  await page.locator('.plist button', { hasText: 'impossible' }).first().click();
  await page.locator('.funnel svg[role=img]').waitFor();
  assert.ok((await page.locator('.why b').innerText()).startsWith('Stops at: '));
  await page.locator('[data-act=spot-storm]').click();
  await until('the storm is decided on', async () => Object.values((await get(demo.url, '/api/document')).decisions).some((decision) => decision.reason === 'Interrupted' || decision.kind === 'interrupt'));
  assert.deepEqual(await faults(), []);
  await close();
});

test('a phone shows the same', async () => {
  const { close } = await settled();
  const phone = await look(browser, demo.url, { viewport: { width: 390, height: 844 }, colorScheme: 'dark' });
  for (const [id, title] of VIEWS) {
    await phone.page.goto(`${demo.url}/#${id}`);
    await phone.page.locator('main h1', { hasText: title }).waitFor({ state: 'attached' });
    const wide = await phone.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${id} is ${wide} pixels too wide`);
  }
  assert.deepEqual(await phone.faults(), []);
  await phone.close();
  await close();
});

test('another site can neither read the page nor act through it', async () => {
  await settled().then((seen) => seen.close());
  const host = new URL(demo.url).host;
  const json = { 'content-type': 'application/json' };
  for (const [headers, code] of [
    [{ host }, 200],
    [{ host: 'evil.example' }, 421],
    [{ host, origin: 'http://evil.example' }, 403],
    [{ host, 'sec-fetch-site': 'cross-site' }, 403],
  ])
    assert.equal((await raw(demo.url, '/api/document', headers)).code, code, JSON.stringify(headers));
  assert.equal((await raw(demo.url, '/api/demo/scale-out', { host, ...json, 'sec-fetch-site': 'cross-site' }, 'POST', '{}')).code, 403);
  assert.equal((await raw(demo.url, '/api/demo/scale-out', { host }, 'POST', '{}')).code, 415);
  const { headers, text: served } = await raw(demo.url, '/', { host });
  assert.ok(headers['content-security-policy'].includes("default-src 'none'") && !headers['content-security-policy'].includes('unsafe'));
  assert.equal(headers['x-content-type-options'], 'nosniff');
  assert.ok(!/ style=| on\w+=/.test(served), 'no style and no handler in the text');
});

test(`with ${MANY} nodes each view opens, drawn instead of built, with the figures of the document`, async () => {
  const { url } = await large();
  const seen = await look(browser, url);
  const { page } = seen;
  await until('everything is worked out', async () => (await get(url, '/api/document')).money, 900000);
  const doc = await get(url, '/api/document');
  assert.equal(Object.keys(doc.nodes).length, MANY);
  for (const [id, title] of VIEWS) {
    await page.goto(`${url}/#${id}`);
    await page.locator('main h1', { hasText: title }).waitFor({ state: 'attached' });
    await shows(page, '#one-nodes', whole(MANY));
    await shows(page, '#one-spend', usd(doc.now[''].spend_usd_h));
  }
  await page.goto(`${url}/#fleet`);
  await page.locator('.drawn canvas').first().waitFor();
  assert.equal(await page.locator('.tile').count(), 0);
  await page.locator('.rove').first().focus();
  const label = () => page.evaluate(() => document.activeElement.getAttribute('aria-label'));
  const first = await until('a node has the focus', label);
  await page.keyboard.press('ArrowRight');
  const second = await until('the next node has it', async () => ((await label()) !== first ? label() : null));
  const name = second.split(',')[0];
  assert.ok(doc.nodes[name], second);
  await page.keyboard.press('Enter');
  await page.locator('#panel h2', { hasText: name }).waitFor();
  await page.keyboard.press('Escape');
  const box = await page.locator('.drawn canvas').first().boundingBox();
  await page.mouse.click(box.x + 4, box.y + 8);
  await page.locator('#panel h2').waitFor();
  assert.deepEqual(await seen.faults(), []);
  await seen.close();
});

test(`with ${MANY} nodes, what painting costs is measured`, async () => {
  const { url } = await large();
  await until('the nodes are seen', async () => Object.keys((await get(url, '/api/document')).nodes).length === MANY);
  const quick = await hurried(url, 100);
  for (const id of ['overview', 'fleet', 'decisions', 'pools']) {
    const { page, faults, close } = await look(browser, `${quick.url}/#${id}`);
    await page.locator('#one-nodes').waitFor();
    const paints = () => page.evaluate(() => window.dovetailPaints.length);
    const before = await paints();
    await until('some updates are painted', async () => (await paints()) - before >= 20);
    const { first, times } = await page.evaluate(() => ({ first: performance.getEntriesByName('first-contentful-paint')[0]?.startTime, times: window.dovetailPaints.slice(2) }));
    const sorted = times.sort((a, b) => a - b);
    console.log(`  ${id}: first paint ${first?.toFixed(0)} ms; script an update: median ${sorted[sorted.length >> 1].toFixed(1)} ms, worst of ${sorted.length} ${sorted.at(-1).toFixed(1)} ms`);
    assert.deepEqual(await faults(), []);
    await close();
  }
  quick.stop();
});

test('when the server is gone the page keeps what it has, and says how old it is', async () => {
  const { page, doc, close } = await settled();
  await demo.stop();
  demo = null;
  await page.locator('.mode.stale').waitFor();
  await until('its age is told', async () => /old/.test(await text(page, '.mode.stale')));
  assert.equal(await text(page, '#one-nodes'), whole(doc.now[''].fleet.nodes));
  await close();
});

browser = await launch();
let [passed, failed] = [0, 0];
for (const [name, run] of tests.filter(([name]) => name.includes(word))) {
  try {
    await run();
    passed++;
    console.log(`test ${name} ... ok`);
  } catch (error) {
    failed++;
    console.log(`test ${name} ... FAILED\n${error.stack || error}`);
  }
}
await browser.close();
await demo?.stop();
await many?.stop();
console.log(`\ntest result: ${failed ? 'FAILED' : 'ok'}. ${passed} passed; ${failed} failed; 0 ignored; 0 measured; 0 filtered out`);
process.exit(failed ? 1 : 0);
