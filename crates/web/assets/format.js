// How figures are written. Nothing is computed here but units.

const whole = new Intl.NumberFormat('en-US');
const cents = new Intl.NumberFormat('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const minus = '\u2212';
const signed = (x, text) => (x < 0 ? minus : '') + text;

export const nf = (x) => whole.format(x);
export const usd = (x) => signed(x, '$' + cents.format(Math.abs(x)));
export const usd0 = (x) => signed(x, '$' + whole.format(Math.round(Math.abs(x))));
export const usd4 = (x) => (x == null ? 'unknown' : signed(x, '$' + Math.abs(x).toFixed(4)));
/** With its sign, also when it is more than nothing. */
export const change = (x, f = usd) => (Math.abs(x) < 0.005 ? f(0) : (x > 0 ? '+' : '') + f(x));
export const pct = (x, digits = 0) => (Number.isFinite(x) ? (x * 100).toFixed(digits) + '\u2009%' : '-');
export const share = (fill) => (fill && fill.allocatable ? fill.requested / fill.allocatable : 0);
export const gib = (mib) => (mib / 1024 >= 100 ? Math.round(mib / 1024) : (mib / 1024).toFixed(1)) + ' GiB';
export const memory = (a, b) => (b >= 1048576 ? `${(a / 1048576).toFixed(2)} of ${(b / 1048576).toFixed(2)} TiB` : `${(a / 1024).toFixed(1)} of ${(b / 1024).toFixed(1)} GiB`);
export const cores = (m) => (m / 1000).toFixed(m % 1000 === 0 ? 0 : m < 1000 ? 2 : 1);
export const age = (sec) => {
  const m = sec / 60;
  return sec < 60 ? Math.max(0, Math.floor(sec)) + 's' : m < 60 ? Math.floor(m) + 'm' : m < 1440 ? Math.floor(m / 60) + 'h ' + String(Math.floor(m % 60)).padStart(2, '0') + 'm' : Math.floor(m / 1440) + 'd';
};
export const span = (sec) => {
  const x = Math.max(0, Math.floor(sec));
  return x < 60 ? x + 's' : x < 3600 ? Math.floor(x / 60) + 'm ' + (x % 60) + 's' : x < 86400 ? Math.floor(x / 3600) + 'h ' + Math.floor((x % 3600) / 60) + 'm' : Math.floor(x / 86400) + 'd ' + Math.floor((x % 86400) / 3600) + 'h';
};
export const clock = (t, seconds) => (t == null ? '' : new Date(t).toISOString().slice(11, seconds ? 19 : 16));
export const counted = (n, noun) => `${nf(n)} ${noun}${n === 1 ? '' : 's'}`;
export const shortType = (t) => t.replace('xlarge', 'xl').replace('large', 'l').replace('medium', 'm').replace('Standard_', '');
/** A sentence begins with a capital letter, a name as it is written. */
export const upper = (text) => (/^[a-z]+[ :,]/.test(text || '') ? text[0].toUpperCase() + text.slice(1) : text || '');
export const shortId = (id) => id.slice(0, 6);
/** The zone without its region, where they share it. */
export const capWord = (cap) => cap || 'unknown capacity';
