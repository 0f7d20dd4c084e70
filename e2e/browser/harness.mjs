// What the tests of the page share: a server to start, a browser to look with, a cluster of many nodes, a way to hurry it.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import { chromium } from 'playwright-core';

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
export const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => fs.existsSync(path));

/** Starts the binary and waits until it says where its page is. */
export function start(binary, args, deadline = 120000) {
  return new Promise((done, failed) => {
    const child = spawn(binary, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let text = '';
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      failed(new Error(`dovetail ${args.join(' ')} did not open its page in time:\n${text}`));
    }, deadline);
    const hear = (chunk) => {
      text += chunk;
      const at = text.match(/page +(http:\/\/[\d.:]+)/);
      if (!at) return;
      clearTimeout(timer);
      done({ url: at[1], stop: () => new Promise((gone) => (child.exitCode != null ? gone() : (child.once('exit', gone), child.kill('SIGTERM')))) });
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.once('exit', (code) => failed(new Error(`dovetail ${args.join(' ')} ended with ${code}:\n${text}`)));
  });
}

export const launch = (more = []) => chromium.launch({ executablePath: CHROMIUM, args: [...FLAGS, ...more] });

/** A page that notes everything that should not happen: errors, violations of the policy, requests to elsewhere. */
export async function look(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'light', reducedMotion: 'reduce', ...options });
  await context.addInitScript(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (e) => window.violations.push(`${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber}`));
  });
  const page = await context.newPage();
  // A deadline, and not how fast it should be: machines that test are busy.
  page.setDefaultTimeout(180000);
  const faults = [],
    { origin } = new URL(url);
  page.on('console', (m) => {
    // Browsers note a lost connection by themselves.
    if (['error', 'warning'].includes(m.type()) && !/net::ERR_|status of (401|429|503)/.test(m.text())) faults.push(`console: ${m.text()}`);
  });
  page.on('pageerror', (e) => faults.push(`error: ${e.stack || e}`));
  page.on('request', (r) => {
    if (!r.url().startsWith(origin) && !r.url().startsWith('data:') && !r.url().startsWith('blob:')) faults.push(`request to ${r.url()}`);
  });
  await page.goto(url);
  return {
    page,
    /** Everything that should not have happened so far. */
    faults: async () => [...faults, ...(await page.evaluate(() => window.violations).catch(() => []))],
    close: () => context.close(),
  };
}

export const get = async (url, path) => (await fetch(url + path)).json();
export const post = async (url, path, body) => (await fetch(url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })).json();

/** Asks until something holds; an answer that never comes is a failure. */
export async function until(what, holds, deadline = 240000) {
  const end = Date.now() + deadline;
  for (;;) {
    const found = await holds().catch(() => null);
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await new Promise((done) => setTimeout(done, 200));
  }
}

/** One request with any headers, as no browser would send it. */
export const raw = (url, path, headers, method = 'GET', body = '') =>
  new Promise((done, failed) => {
    const { hostname, port } = new URL(url);
    const request = http.request({ hostname, port, path, method, headers }, (answer) => {
      let text = '';
      answer.on('data', (chunk) => (text += chunk));
      answer.on('end', () => done({ code: answer.statusCode, headers: answer.headers, text }));
    });
    request.on('error', failed);
    request.end(body);
  });

const TYPES = [
  ['m7g.2xlarge', 8, 32, 'arm64'],
  ['c7g.4xlarge', 16, 32, 'arm64'],
  ['r7g.xlarge', 4, 32, 'arm64'],
  ['m6i.2xlarge', 8, 32, 'amd64'],
  ['c6a.2xlarge', 8, 16, 'amd64'],
];
const POOLS = ['general', 'batch', 'data', 'web'];
const ZONES = ['us-east-1a', 'us-east-1b', 'us-east-1c'];

/** A dump of a cluster of so many nodes, each with so many pods. */
export function dump(file, nodes, pods) {
  const items = [];
  const at = '2026-11-16T08:00:00Z';
  for (const name of POOLS)
    items.push({
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodePool',
      metadata: { name, uid: 'pool-' + name },
      spec: {
        limits: { cpu: '100000' },
        disruption: { consolidateAfter: '5m', consolidationPolicy: name === 'data' ? 'WhenEmpty' : 'WhenEmptyOrUnderutilized', budgets: [{ nodes: '10%' }] },
        template: { spec: { nodeClassRef: { group: 'karpenter.k8s.aws', kind: 'EC2NodeClass', name: 'default' }, expireAfter: '720h', requirements: [{ key: 'karpenter.sh/capacity-type', operator: 'In', values: ['spot', 'on-demand'] }, { key: 'karpenter.k8s.aws/instance-category', operator: 'In', values: ['c', 'm', 'r'] }] } },
      },
      status: { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: at, reason: 'Ready', message: '' }] },
    });
  items.push({ apiVersion: 'karpenter.k8s.aws/v1', kind: 'EC2NodeClass', metadata: { name: 'default' }, spec: {}, status: { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: at, reason: 'Ready', message: '' }] } });
  for (let i = 0; i < nodes; i++) {
    const [type, cpu, gib, arch] = TYPES[(i * 7) % TYPES.length];
    const pool = POOLS[i % POOLS.length],
      zone = ZONES[Math.floor(i / POOLS.length) % ZONES.length],
      spot = pool !== 'data' && i % 3 !== 0;
    const name = `node-${String(i).padStart(5, '0')}`,
      provider = `aws:///${zone}/i-${String(i).padStart(17, '0')}`;
    const labels = { 'karpenter.sh/nodepool': pool, 'node.kubernetes.io/instance-type': type, 'topology.kubernetes.io/zone': zone, 'karpenter.sh/capacity-type': spot ? 'spot' : 'on-demand', 'kubernetes.io/arch': arch, 'kubernetes.io/os': 'linux', 'kubernetes.io/hostname': name, 'karpenter.sh/registered': 'true', 'karpenter.sh/initialized': 'true' };
    const capacity = { cpu: String(cpu), memory: `${gib}Gi`, pods: '110' },
      allocatable = { cpu: `${cpu * 1000 - 100}m`, memory: `${gib * 1024 - 700}Mi`, pods: '110' };
    const yes = (kind) => ({ type: kind, status: 'True', lastTransitionTime: at, reason: kind, message: '' });
    items.push({ apiVersion: 'v1', kind: 'Node', metadata: { name, uid: 'n' + i, creationTimestamp: at, labels }, spec: { providerID: provider }, status: { capacity, allocatable, nodeInfo: { kubeletVersion: 'v1.36.0' }, conditions: [yes('Ready')] } });
    items.push({
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodeClaim',
      metadata: { name: 'claim-' + i, uid: 'c' + i, creationTimestamp: at, labels },
      spec: { requirements: [], nodeClassRef: { group: 'karpenter.k8s.aws', kind: 'EC2NodeClass', name: 'default' } },
      status: { providerID: provider, nodeName: name, capacity, allocatable, imageID: 'ami-1', conditions: [yes('Launched'), yes('Registered'), yes('Initialized'), yes('Consolidatable')] },
    });
    for (let p = 0; p < pods; p++)
      items.push({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `app-${i}-${p}`, namespace: 'shop', uid: `p${i}-${p}`, creationTimestamp: at, labels: { app: 'app' }, ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'app', uid: 'rs', controller: true }] },
        spec: { nodeName: name, containers: [{ name: 'main', image: 'app', resources: { requests: { cpu: `${Math.floor(((cpu * 1000 - 200) / pods) * (0.5 + ((i * 13 + p) % 10) / 20))}m`, memory: `${Math.floor(((gib * 1024 - 800) / pods) * 0.7)}Mi` } } }] },
        status: { phase: 'Running', conditions: [yes('PodScheduled'), yes('Ready')] },
      });
  }
  fs.writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
}

/** The page of another server, whose cluster changes four times a second: so many nodes each time. */
export function hurried(target, changes) {
  let sent = 0;
  const server = http.createServer(async (request, response) => {
    if (request.url !== '/api/stream') {
      const { hostname, port } = new URL(target);
      const through = http.request({ hostname, port, path: request.url, method: request.method, headers: { accept: '*/*' } }, (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      });
      return request.pipe(through);
    }
    const whole = await get(target, '/api/document');
    const names = Object.keys(whole.nodes);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`event: snapshot\nid: h-0\ndata: ${JSON.stringify(whole)}\n\n`);
    const timer = setInterval(() => {
      const nodes = {};
      for (let i = 0; i < changes; i++) {
        const name = names[(sent * changes + i) % names.length];
        const node = structuredClone(whole.nodes[name]);
        node.cpu_m.requested = Math.floor(node.cpu_m.allocatable * ((sent + i) % 10) * 0.1);
        nodes[name] = node;
      }
      const now = structuredClone(whole.now['']);
      now.at = new Date(Date.parse(now.at) + ++sent * 250).toISOString();
      response.write(`event: delta\nid: h-${sent}\ndata: ${JSON.stringify({ set: { nodes, now: { '': now } }, drop: {} })}\n\n`);
    }, 250);
    response.on('close', () => clearInterval(timer));
  });
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done({ url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() })));
}
