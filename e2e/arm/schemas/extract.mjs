// What do the ARM calls of the provider look like? Writes operations.json and one file of definitions per set beside this
// file.
//
//   node e2e/arm/schemas/extract.mjs FOLDER
//
// FOLDER holds `bundled/` (OpenAPI 2.0) and `resource-schemas/` (JSON Schema), both made from what Azure publishes. Kept is
// what decides whether a body is valid; prose and hints for generators go. References are by bare name within a set.

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const folder = process.argv[2];
const read = (file) => JSON.parse(readFileSync(join(folder, file), "utf8"));
const bundle = (name) => read(`bundled/${name}.json`).definitions;
const resource = (name) => read(`resource-schemas/${name}.schema.json`).$defs;

const KEPT = new Set([
  "type", "properties", "required", "items", "additionalProperties", "allOf", "enum", "const", "readOnly", "minimum",
  "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "format", "$ref", "x-known-values", "discriminator",
  "x-ms-secret",
]);

// A schema with what KEPT names; the names of properties are not keywords.
function compact(schema) {
  if (Array.isArray(schema)) return schema.map(compact);
  if (schema === null || typeof schema !== "object") return schema;
  const out = {};
  for (const [key, value] of Object.entries(schema)) {
    if (!KEPT.has(key)) continue;
    if (key === "$ref") out.$ref = value.split("/").pop();
    else if (key === "properties") out.properties = Object.fromEntries(Object.entries(value).map(([n, s]) => [n, compact(s)]));
    // Sizes are a matter of the region's catalogue, which is newer than any list.
    else if (key === "x-known-values" && value.includes("Basic_A0")) continue;
    else if (["enum", "x-known-values", "required", "const"].includes(key)) out[key] = value;
    else out[key] = compact(value);
  }
  return out;
}

function set(...sources) {
  const all = {};
  for (const source of sources) for (const [name, schema] of Object.entries(source)) all[name] = compact(schema);
  return all;
}

const array = (ref) => ({ type: "array", items: { $ref: ref } });
const page = (ref) => ({ type: "object", properties: { value: array(ref), nextLink: { type: "string" } }, required: ["value"] });
const text = { type: "string" };
const VM = "Microsoft.Compute_virtualMachines";
const EXTENSION = "Microsoft.Compute_virtualMachines_extensions";
const MACHINE = "Microsoft.ContainerService_managedClusters_agentPools_machines";
const POOL = "Microsoft.ContainerService_managedClusters_agentPools";
const SET = "Microsoft.Compute_diskEncryptionSets";
const DISK = "Microsoft.Compute_disks";
const cloud = bundle("virtualMachine-2024-07-01");
const error = { CloudError: cloud.CloudError, ApiError: cloud.ApiError, ApiErrorBase: cloud.ApiErrorBase, InnerError: cloud.InnerError };
const flat = { type: "object", properties: { code: text, message: text, subcode: text, target: text, details: array("FlatError") }, required: ["code", "message"] };

function compute() {
  const vm = resource("Microsoft.Compute_virtualMachines@2025-04-01");
  const all = set(vm, resource("Microsoft.Compute_virtualMachines_extensions@2025-04-01"), bundle("computeRPCommon-2024-07-01"), error);
  const own = all[VM].properties;
  all.VirtualMachineUpdate = { type: "object", properties: { plan: own.plan, properties: own.properties, identity: own.identity, zones: own.zones, tags: own.tags } };
  all.VirtualMachineList = page(VM);
  const extension = all[EXTENSION].properties;
  all.ExtensionUpdate = { type: "object", properties: { properties: extension.properties, tags: extension.tags } };
  return all;
}

function aks(version) {
  // The pool's schema is published for one version here; the call is not in the provider's path.
  const all = set(resource(`${MACHINE}@${version}`), resource(`${POOL}@2026-05-02-preview`));
  delete all[POOL].properties.apiVersion;
  all.MachineList = page(MACHINE);
  all.DeleteMachines = { type: "object", properties: { machineNames: { type: "array", items: text } }, required: ["machineNames"] };
  all.FlatError = flat;
  // From the shape of the list itself: no schema of it is at hand.
  all.NodeImageVersion = { type: "object", properties: { os: text, sku: text, version: text, fullName: text } };
  all.NodeImageVersionList = page("NodeImageVersion");
  return all;
}

// Not published as a schema: from the documentation of the Retail Prices API.
const price = {
  PricePage: {
    type: "object",
    properties: { BillingCurrency: text, CustomerEntityId: text, CustomerEntityType: text, Items: array("Price"), NextPageLink: { type: ["string", "null"] }, Count: { type: "integer" } },
    required: ["Items", "NextPageLink", "Count"],
  },
  Price: {
    type: "object",
    properties: Object.fromEntries([
      ...["currencyCode", "armRegionName", "location", "effectiveStartDate", "meterId", "meterName", "productId", "skuId", "productName", "skuName", "serviceName", "serviceId", "serviceFamily", "unitOfMeasure", "type", "armSkuName", "reservationTerm"].map((name) => [name, text]),
      ...["tierMinimumUnits", "retailPrice", "unitPrice"].map((name) => [name, { type: "number" }]),
      ["isPrimaryMeterRegion", { type: "boolean" }],
    ]),
    required: ["retailPrice", "armSkuName", "skuName", "productName", "meterName", "armRegionName"],
  },
  PriceError: { type: "object", properties: { Error: { type: "object", properties: { Code: text, Message: text } } }, required: ["Error"] },
};

// Not published as a schema of Azure's: what the reference's client of the node bootstrapping service sends and reads, field
// by field, and closed, so that a misspelt one is found.
const int = { type: "integer", format: "int32" };
const bool = { type: "boolean" };
const texts = { type: "array", items: text };
const closed = (properties, required = []) => ({ type: "object", properties, required, additionalProperties: false });
const named = (names, schema) => Object.fromEntries(names.map((name) => [name, schema]));
const sysctls = [
  "netCoreSomaxconn", "netCoreNetdevMaxBacklog", "netCoreRmemDefault", "netCoreRmemMax", "netCoreWmemDefault", "netCoreWmemMax",
  "netCoreOptmemMax", "netIpv4TcpMaxSynBacklog", "netIpv4TcpMaxTwBuckets", "netIpv4TcpFinTimeout", "netIpv4TcpKeepaliveTime",
  "netIpv4TcpKeepaliveProbes", "netIpv4TcpkeepaliveIntvl", "netIpv4NeighDefaultGcThresh1", "netIpv4NeighDefaultGcThresh2",
  "netIpv4NeighDefaultGcThresh3", "netNetfilterNfConntrackMax", "netNetfilterNfConntrackBuckets", "fsInotifyMaxUserWatches",
  "fsFileMax", "fsAioMaxNr", "fsNrOpen", "kernelThreadsMax", "vmMaxMapCount", "vmSwappiness", "vmVfsCachePressure",
];
const bootstrapping = {
  ProvisionValues: closed({ provisionProfile: { $ref: "ProvisionProfile" }, provisionHelperValues: closed(named(["skuCPU", "skuMemory"], { type: "number" }), ["skuCPU", "skuMemory"]) }, ["provisionProfile", "provisionHelperValues"]),
  ProvisionProfile: closed(
    {
      ...named(["name", "vmSize", "storageProfile", "distro", "orchestratorVersion", "vnetSubnetID", "architecture", "messageOfTheDay"], text),
      ...named(["osType", "osSku", "kubeletDiskType", "mode", "gpuInstanceProfile", "workloadRuntime", "maxPods"], int),
      ...named(["vnetCidrs", "nodeInitializationTaints", "nodeTaints"], texts),
      customNodeLabels: { type: "object", additionalProperties: text },
      enableFIPS: bool,
      customKubeletConfig: closed({
        ...named(["cpuManagerPolicy", "cpuCfsQuotaPeriod", "topologyManagerPolicy", "seccompDefault"], text),
        ...named(["imageGcHighThreshold", "imageGcLowThreshold", "containerLogMaxSizeMB", "containerLogMaxFiles", "podMaxPids", "cpuReserved", "memoryReserved"], int),
        ...named(["cpuCfsQuota", "failSwapOn"], bool),
        allowedUnsafeSysctls: texts,
      }),
      customLinuxOSConfig: closed({
        sysctls: closed({ ...named(sysctls, int), netIpv4TcpTwReuse: bool, netIpv4IpLocalPortRange: text }),
        transparentHugePageEnabled: text,
        transparentHugePageDefrag: text,
        swapFileSizeMB: int,
        ulimits: closed(named(["noFile", "maxLockedMemory"], text)),
      }),
      agentPoolWindowsProfile: closed({ disableOutboundNat: bool, containerdPackage: text, enableNextGenNetworking: bool }),
      securityProfile: closed({ sshAccess: int, enableVTPM: bool, enableSecureBoot: bool }),
      gpuProfile: closed({ installGPUDriver: bool, driverType: int }),
      artifactStreamingProfile: closed({ enabled: bool }),
      localDNSProfile: closed({ mode: text, vnetDNSOverrides: { type: "object", additionalProperties: { $ref: "DnsOverride" } }, kubeDNSOverrides: { type: "object", additionalProperties: { $ref: "DnsOverride" } } }),
    },
    ["name", "vmSize", "osType", "osSku", "storageProfile", "distro", "orchestratorVersion", "vnetCidrs", "vnetSubnetID", "mode", "architecture", "maxPods"],
  ),
  DnsOverride: closed({
    ...named(["queryLogging", "protocol", "forwardDestination", "forwardPolicy", "serveStale"], text),
    ...named(["maxConcurrent", "cacheDurationInSeconds", "serveStaleDurationInSeconds"], int),
  }),
  NodeBootstrapping: closed({ customData: text, cse: text, osImageConfig: { type: "object" }, sigImageConfig: { type: "object" } }, ["customData", "cse", "osImageConfig", "sigImageConfig"]),
  BootstrappingError: { type: "object", properties: { code: text, message: text }, required: ["code", "message"] },
};

// The answer of a status URL, as the ARM resource provider contract has it.
const asynchronous = {
  Status: {
    type: "object",
    properties: { id: text, name: text, status: text, startTime: text, endTime: text, percentComplete: { type: "number" }, properties: { type: "object" }, error: { $ref: "StatusError" } },
    required: ["status"],
  },
  StatusError: { type: "object", properties: { code: text, message: text, target: text, details: array("StatusError") }, required: ["code", "message"] },
  CloudError: { type: "object", properties: { error: { $ref: "StatusError" } }, required: ["error"] },
};

const sets = {
  compute: compute(),
  disk: set(resource(`${SET}@2025-01-02`), resource(`${DISK}@2025-01-02`), error),
  network: set(...["networkInterface", "loadBalancer", "networkSecurityGroup", "virtualNetwork"].map((name) => bundle(`${name}-2022-01-01`))),
  graph: set(bundle("resourcegraph-2021-06-01-preview")),
  skus: set(bundle("skus-2021-07-01"), error),
  gallery: set(bundle("communityGallery-2024-03-03")),
  subscriptions: set(bundle("subscriptions-2022-12-01")),
  "aks-2026-01": aks("2026-01-02-preview"),
  "aks-2026-05": aks("2026-05-02-preview"),
  price,
  bootstrapping,
  asynchronous,
};

const COMPUTE = "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute";
const NETWORK = "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network";
const REGION = "/subscriptions/{subscription}/providers/Microsoft.Compute/locations/{location}";
const POOLS = "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.ContainerService/managedClusters/{cluster}/agentPools/{pool}";

// What a caller must be allowed to do; by the rules of Azure's names, and none for what is public or only filtered.
function action(id, method, path) {
  if (["Resources", "RetailPrices_List", "NodeBootstrapping_Get"].includes(id)) return "";
  if (id.startsWith("Operations_")) return "{namespace}/locations/operations/read";
  if (id === "Subscriptions_ListLocations") return "Microsoft.Resources/subscriptions/locations/read";
  const parts = path.split("/providers/").pop().split("/");
  const names = parts.slice(1).filter((part) => !part.startsWith("{"));
  const verb = { GET: "read", PUT: "write", PATCH: "write", DELETE: "delete", POST: "action" }[method];
  return [parts[0], ...names, verb].join("/");
}
const call = (id, method, path, definitions, versions, answers, extra = {}) => ({ id, action: action(id, method, path), method, path, set: definitions, versions, answers, error: "CloudError", ...extra });

const vm = (id, method, tail, answers, extra) => call(id, method, `${COMPUTE}/virtualMachines${tail}`, "compute", ["2025-04-01"], answers, extra);
const net = (id, method, tail, answers, extra) => call(id, method, `${NETWORK}${tail}`, "network", ["2022-01-01"], answers, extra);
const expand = { optional: ["$expand"] };
const gone = { 200: null, 202: null, 204: null };
const both = (ref) => ({ 200: ref, 201: ref });
function machines(definitions, version) {
  const one = (id, method, tail, answers, extra = {}) => call(id, method, `${POOLS}${tail}`, definitions, [version], answers, { error: "FlatError", ...extra });
  return [
    one("Machines_CreateOrUpdate", "PUT", "/machines/{machine}", both(MACHINE), { body: MACHINE }),
    one("Machines_Get", "GET", "/machines/{machine}", { 200: MACHINE }),
    one("Machines_List", "GET", "/machines", { 200: "MachineList" }),
    one("AgentPools_DeleteMachines", "POST", "/deleteMachines", { 202: null }, { body: "DeleteMachines" }),
    one("AgentPools_Get", "GET", "", { 200: POOL }),
    call("NodeImageVersions_List", "GET", "/subscriptions/{subscription}/providers/Microsoft.ContainerService/locations/{location}/nodeImageVersions", definitions, [version], { 200: "NodeImageVersionList" }, { error: "FlatError", optional: ["$skiptoken"] }),
  ];
}

const operations = [
  vm("VirtualMachines_CreateOrUpdate", "PUT", "/{vm}", both(VM), { body: VM }),
  vm("VirtualMachines_Get", "GET", "/{vm}", { 200: VM }, expand),
  vm("VirtualMachines_Update", "PATCH", "/{vm}", { 200: VM }, { body: "VirtualMachineUpdate" }),
  vm("VirtualMachines_Delete", "DELETE", "/{vm}", gone, { optional: ["forceDeletion"] }),
  vm("VirtualMachines_List", "GET", "", { 200: "VirtualMachineList" }, { optional: ["$filter", "$expand", "$skiptoken"] }),
  vm("VirtualMachineExtensions_CreateOrUpdate", "PUT", "/{vm}/extensions/{extension}", both(EXTENSION), { body: EXTENSION }),
  vm("VirtualMachineExtensions_Update", "PATCH", "/{vm}/extensions/{extension}", { 200: EXTENSION }, { body: "ExtensionUpdate" }),
  vm("VirtualMachineExtensions_Get", "GET", "/{vm}/extensions/{extension}", { 200: EXTENSION }, expand),
  vm("VirtualMachineExtensions_Delete", "DELETE", "/{vm}/extensions/{extension}", gone),
  call("Usage_List", "GET", `${REGION}/usages`, "compute", ["2025-04-01"], { 200: "ListUsagesResult" }, { optional: ["$skiptoken"] }),
  call("ResourceSkus_List", "GET", "/subscriptions/{subscription}/providers/Microsoft.Compute/skus", "skus", ["2021-07-01"], { 200: "ResourceSkusResult" }, { optional: ["$filter", "includeExtendedLocations", "$skiptoken"] }),
  call("CommunityGalleryImageVersions_List", "GET", `${REGION}/communityGalleries/{gallery}/images/{image}/versions`, "gallery", ["2025-03-03", "2024-03-03"], { 200: "CommunityGalleryImageVersionList" }, { optional: ["$skiptoken"] }),
  call("DiskEncryptionSets_Get", "GET", `${COMPUTE}/diskEncryptionSets/{encryption}`, "disk", ["2025-01-02"], { 200: SET }),
  call("Disks_Get", "GET", `${COMPUTE}/disks/{disk}`, "disk", ["2025-01-02"], { 200: DISK }),
  call("Disks_Delete", "DELETE", `${COMPUTE}/disks/{disk}`, "disk", ["2025-01-02"], gone),
  net("NetworkInterfaces_CreateOrUpdate", "PUT", "/networkInterfaces/{nic}", both("NetworkInterface"), { body: "NetworkInterface" }),
  net("NetworkInterfaces_Get", "GET", "/networkInterfaces/{nic}", { 200: "NetworkInterface" }, expand),
  net("NetworkInterfaces_UpdateTags", "PATCH", "/networkInterfaces/{nic}", { 200: "NetworkInterface" }, { body: "TagsObject" }),
  net("NetworkInterfaces_Delete", "DELETE", "/networkInterfaces/{nic}", gone),
  net("NetworkInterfaces_List", "GET", "/networkInterfaces", { 200: "NetworkInterfaceListResult" }, { optional: ["$skiptoken"] }),
  net("LoadBalancers_List", "GET", "/loadBalancers", { 200: "LoadBalancerListResult" }, { optional: ["$skiptoken"] }),
  net("NetworkSecurityGroups_List", "GET", "/networkSecurityGroups", { 200: "NetworkSecurityGroupListResult" }, { optional: ["$skiptoken"] }),
  net("NetworkSecurityGroups_Get", "GET", "/networkSecurityGroups/{nsg}", { 200: "NetworkSecurityGroup" }, expand),
  net("VirtualNetworks_Get", "GET", "/virtualNetworks/{vnet}", { 200: "VirtualNetwork" }, expand),
  net("Subnets_Get", "GET", "/virtualNetworks/{vnet}/subnets/{subnet}", { 200: "Subnet" }, expand),
  call("Resources", "POST", "/providers/Microsoft.ResourceGraph/resources", "graph", ["2021-06-01-preview"], { 200: "QueryResponse" }, { body: "QueryRequest", error: "ErrorResponse" }),
  call("Subscriptions_ListLocations", "GET", "/subscriptions/{subscription}/locations", "subscriptions", ["2022-12-01", "2021-01-01"], { 200: "LocationListResult" }, { optional: ["includeExtendedLocations"] }),
  ...machines("aks-2026-01", "2026-01-02-preview"),
  ...machines("aks-2026-05", "2026-05-02-preview"),
  call("NodeBootstrapping_Get", "GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.ContainerService/managedclusters/{cluster}/nodeBootstrapping", "bootstrapping", [""], { 200: "NodeBootstrapping" }, { error: "BootstrappingError", body: "ProvisionValues" }),
  call("RetailPrices_List", "GET", "/api/retail/prices", "price", ["2023-01-01-preview"], { 200: "PricePage" }, { error: "PriceError", optional: ["$filter", "$skip", "currencyCode"], open: true }),
  call("Operations_Status", "GET", "/subscriptions/{subscription}/providers/{namespace}/locations/{location}/operations/{operation}", "asynchronous", ["2025-04-01", "2022-01-01", "2025-01-02", "2026-01-02-preview", "2026-05-02-preview"], { 200: "Status" }, { optional: ["t"] }),
  call("Operations_Result", "GET", "/subscriptions/{subscription}/providers/{namespace}/locations/{location}/operationResults/{operation}", "asynchronous", ["2025-04-01", "2022-01-01", "2025-01-02", "2026-01-02-preview", "2026-05-02-preview"], { 200: null, 202: null, 204: null }, { optional: ["t"] }),
];

// Only what the operations can reach.
function reachable(definitions, roots) {
  const seen = new Set();
  const visit = (name) => {
    if (seen.has(name)) return;
    if (!definitions[name]) throw new Error(`no definition ${name}`);
    seen.add(name);
    JSON.stringify(definitions[name], (key, value) => { if (key === "$ref" && typeof value === "string") visit(value); return value; });
  };
  roots.forEach(visit);
  return [...seen].sort();
}

for (const [name, definitions] of Object.entries(sets)) {
  const own = operations.filter((operation) => operation.set === name);
  const roots = own.flatMap((operation) => [operation.body, operation.error, ...Object.values(operation.answers)]).filter(Boolean);
  const lines = reachable(definitions, roots).map((key) => `${JSON.stringify(key)}: ${JSON.stringify(definitions[key])}`);
  writeFileSync(join(here, `${name}.json`), `{\n${lines.join(",\n")}\n}\n`);
}
writeFileSync(join(here, "operations.json"), `[\n${operations.map((operation) => JSON.stringify(operation)).join(",\n")}\n]\n`);
