// Which sizes and prices does the double's region have? Writes skus.json, prices.json and images.json beside this file.
//
//   node e2e/arm/data/extract.mjs FOLDER
//
// FOLDER holds `azure-resource-skus-exact.json` (records as the API gave them; they win), `azure-skus.json` (facts about
// every size, from which records of the same shape are made for the families named below) and
// `azure-node-image-versions.json`. Places are left out: the double puts its own region into every record.

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const read = (file) => readFileSync(join(process.argv[2], file), "utf8");
const sizes = read("azure-skus.json").trim().split("\n").map((line) => JSON.parse(line));
const exact = JSON.parse(read("azure-resource-skus-exact.json")).southcentralus.value;

// General purpose, memory, compute, storage, burstable, arm64 and GPU: what the examples of users ask for.
const CHOSEN = [
  /^Standard_[DE](2|4|8|16|32|48|64)(s|as|ds|ads|ps|pds)_v5$/, /^Standard_[DE](2|4|8|16|32|48|64|96)(as|s|ds)_v6$/,
  /^Standard_F(2|4|8|16|32|48|64|72)s_v2$/, /^Standard_D(8|16|32|48)s_v3$/, /^Standard_E(2|4|8|16)s_v3$/,
  /^Standard_DS[3-5]_v2$/, /^Standard_B(2s|2ms|4ms|8ms|16ms)$/, /^Standard_L(8|16|32)s_v3$/,
  /^Standard_NC(4|8|64)as_T4_v3$/, /^Standard_NC(48|96)ads_A100_v4$/, /^Standard_NV(6|12|18|36)ads_A10_v5$/,
];

function capabilities(size) {
  const yes = (value) => (value ? "True" : "False");
  const temporary = (size.docTempGiB ?? 0) * (size.docTempDisks ?? 1) * 1024;
  const all = [
    ["MaxResourceVolumeMB", size.docLocalNVMe ? 0 : temporary], ["OSVhdSizeMB", 1047552], ["vCPUs", size.vcpu],
    ["MemoryPreservingMaintenanceSupported", "True"], ["HyperVGenerations", (size.hyperv ?? [1, 2]).map((g) => `V${g}`).join(",")],
    ["MemoryGB", size.memGiB], ["MaxDataDiskCount", size.maxDataDisks ?? 4], ["CpuArchitectureType", size.arch === "arm64" ? "Arm64" : "x64"],
    ["LowPriorityCapable", yes(size.spot?.eastus)], ["PremiumIO", yes(size.premiumIO)], ["VMDeploymentTypes", "IaaS"],
    ["vCPUsAvailable", size.vcpu], ["vCPUsPerCore", size.arch === "arm64" ? 1 : 2],
    ["EphemeralOSDiskSupported", yes(size.ephemeralOS && temporary > 0)], ["EncryptionAtHostSupported", "True"],
    ["CapacityReservationSupported", "True"], ["AcceleratedNetworkingEnabled", yes(size.accelNet)], ["RdmaEnabled", "False"],
    ["MaxNetworkInterfaces", size.maxNICs ?? 2],
  ];
  if (size.gpu) all.push(["GPUs", size.gpu]);
  if (size.ephemeralOS && temporary > 0) all.push(["SupportedEphemeralOSDiskPlacements", "ResourceDisk"]);
  return all.map(([name, value]) => ({ name, value: String(value) }));
}

const record = (size) => ({
  resourceType: "virtualMachines", name: size.name, tier: "Standard", size: size.name.replace(/^Standard_/, ""),
  family: size.quotaFamily, zones: ["1", "2", "3"], capabilities: capabilities(size),
});
const known = new Set(exact.map((sku) => sku.name));
const made = sizes.filter((size) => !known.has(size.name) && CHOSEN.some((chosen) => chosen.test(size.name)))
  .filter((size) => size.quotaFamily && size.vcpu && size.memGiB && size.onDemand?.eastus).map(record);
const given = exact.map(({ resourceType, name, tier, size, family, locationInfo, capabilities }) => ({ resourceType, name, tier, size, family, zones: locationInfo[0].zones ?? [], capabilities }));
const skus = [...given, ...made].sort((a, b) => (a.name < b.name ? -1 : 1));
const lines = (list) => `[\n${list.map((item) => JSON.stringify(item)).join(",\n")}\n]\n`;
writeFileSync(join(here, "skus.json"), lines(skus));

const names = new Set(skus.map((sku) => sku.name));

// Some on-demand prices of the source carry a Windows licence, 0.046 a core: they stand out within their series.
const cheapest = new Map();
for (const { series, vcpu, onDemand } of sizes) {
  if (series && vcpu && onDemand?.eastus) cheapest.set(series, Math.min(cheapest.get(series) ?? Infinity, onDemand.eastus / vcpu));
}
function onDemand({ series, vcpu, onDemand }) {
  const isLicensed = Math.abs(onDemand.eastus / vcpu - (cheapest.get(series) ?? 0) - 0.046) < 0.0006;
  return isLicensed ? Number((onDemand.eastus - 0.046 * vcpu).toFixed(6)) : onDemand.eastus;
}
const prices = sizes.filter((size) => names.has(size.name) && size.onDemand?.eastus)
  .map((size) => ({ size: size.name, series: size.series, vcpu: size.vcpu, onDemand: onDemand(size), spot: size.spot?.eastus ?? null }));
writeFileSync(join(here, "prices.json"), lines(prices));
writeFileSync(join(here, "images.json"), lines(JSON.parse(read("azure-node-image-versions.json")).value));
