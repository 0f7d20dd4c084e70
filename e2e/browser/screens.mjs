// The pictures of docs/screens: node screens.mjs BINARY DIRECTORY TARGET [dump|demo]
// Some are of the cluster of the fixtures, which has trouble of every kind; the others of a running demo, in which a few
// buttons are pressed. Nothing on them is arranged otherwise.

import fs from 'node:fs';
import path from 'node:path';
import { get, launch, look, post, start, until } from './harness.mjs';

const [binary, directory, target, only] = process.argv.slice(2);
const FIXTURE = ['--from', path.resolve('../../crates/dovetail/tests/fixtures/prod-us'), '--at', '2026-11-16T15:42:00Z'];
const LONG = 900000;
fs.mkdirSync(target, { recursive: true });
// Grey edges of letters instead of coloured ones: smaller files, and right on every screen.
const browser = await launch(['--disable-lcd-text']);

async function shoot(url, name, hash, { scheme = 'light', width = 1440, height = 900, ready, then } = {}) {
  const { page, faults, close } = await look(browser, `${url}/#${hash}`, { viewport: { width, height }, colorScheme: scheme });
  await page.locator('#one-nodes').waitFor({ state: 'attached' });
  if (ready) await page.locator(ready).first().waitFor();
  if (then) await then(page);
  await page.mouse.move(2, 2);
  await page.evaluate(() => document.fonts.ready);
  await page.waitForTimeout(600);
  await page.screenshot({ path: path.join(target, name + '.png') });
  const wrong = await faults();
  if (wrong.length) throw new Error(`${name}: ${wrong.join('; ')}`);
  console.log(`${name}.png`);
  await close();
}

async function ofDump() {
  const server = await start(binary, ['page', ...FIXTURE]);
  const { url } = server;
  const doc = () => get(url, '/api/document');
  const watcher = await look(browser, url);
  const seen = await until('everything is worked out', async () => ((await doc()).money ? doc() : null), LONG);
  const held = Object.keys(seen.marks).find((name) => seen.marks[name].held) || Object.keys(seen.nodes)[0];
  await shoot(url, 'overview', 'overview', { ready: '.ruler svg' });
  await shoot(url, 'fleet-node', 'fleet/' + held, { ready: '#panel .verdict' });
  await shoot(url, 'fleet-pods-dark', 'fleet', { scheme: 'dark', then: (page) => page.keyboard.press('z') });
  await shoot(url, 'pending', 'pending', { ready: '.funnel svg' });
  await shoot(url, 'nodepools', 'pools', { ready: '.cal svg' });
  await shoot(url, 'whatif', 'whatif/zone', {
    then: async (page) => {
      await page.locator('button[type=submit]', { hasText: 'Ask the planner' }).click();
      await page.locator('.slats').waitFor();
    },
  });
  await watcher.close();
  await server.stop();
}

async function ofDemo() {
  const demo = await start(binary, ['demo', '--speed', '60x', '--seed', '7', '--kubeconfig', path.join(directory, 'kubeconfig')]);
  const { url } = demo;
  const act = (id, argument) => post(url, '/api/demo/' + id, argument == null ? {} : { argument });
  const doc = () => get(url, '/api/document');
  const passes = async (minutes) => {
    const at = async () => Date.parse((await doc()).now[''].at);
    const end = (await at()) + minutes * 6e4;
    await until(`${minutes} minutes pass`, async () => (await at()) >= end, LONG);
  };
  const still = async () => {
    await act('speed', 0);
    await until('everything is worked out', async () => {
      const seen = await doc();
      return Date.parse(seen.now[''].at) - Date.parse(seen.money?.[''].at) < 6e4;
    }, LONG);
  };
  const watcher = await look(browser, url);
  await until('all pods run', async () => {
    const { fleet, pods } = (await doc()).now[''];
    return fleet.nodes >= 8 && pods.pending === 0;
  }, LONG);
  await passes(3);
  await act('scale-out');
  await passes(5);
  await act('speed', 20);
  await act('spot-storm');
  await passes(1);
  await still();
  await shoot(url, 'fleet-spot-storm', 'fleet');
  await act('speed', 60);
  await passes(5);
  await still();
  const seen = await doc();
  const launches = Object.entries(seen.decisions).filter(([, one]) => one.kind === 'launch' && one.pods > 1);
  await shoot(url, 'overview-dark', 'overview', { ready: '.ruler svg', scheme: 'dark' });
  await shoot(url, 'decisions', 'decisions/' + (launches.at(-1)?.[0] || Object.keys(seen.decisions)[0]), { ready: '.dbody .dgrid' });
  await shoot(url, 'phone', 'fleet', { scheme: 'dark', width: 390, height: 760 });
  await watcher.close();
  await demo.stop();
}

if (only !== 'demo') await ofDump();
if (only !== 'dump') await ofDemo();
await browser.close();
