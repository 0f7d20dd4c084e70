// Which arguments does a resource of a Terraform provider take? Writes one file for each provider beside this one.
//
//   node terraform/schema/extract.mjs
//
// Provider plugins publish their schema only to whoever can run them. The bindings on npm are made from it: every argument
// is a property with a link that ends in its name, required ones have no question mark. Only names, whether they are
// required, and which are blocks or lists of objects is kept, of the resources our modules use.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const cache = join(process.env.DOVETAIL_CACHE ?? join(process.env.HOME, ".cache/dovetail"), "terraform-schema");

const providers = {
  aws: {
    package: "@cdktf/provider-aws@21.22.1",
    resources: [
      "aws_cloudwatch_event_rule", "aws_cloudwatch_event_target", "aws_ec2_tag", "aws_eks_access_entry", "aws_eks_addon",
      "aws_eks_pod_identity_association", "aws_iam_instance_profile", "aws_iam_policy", "aws_iam_role",
      "aws_iam_role_policy_attachment", "aws_sqs_queue", "aws_sqs_queue_policy",
    ],
    data: ["aws_caller_identity", "aws_eks_cluster", "aws_iam_role", "aws_partition", "aws_sqs_queue", "aws_subnets"],
  },
  azurerm: {
    package: "@cdktf/provider-azurerm@14.23.1",
    resources: [
      "azurerm_federated_identity_credential", "azurerm_role_assignment", "azurerm_role_definition",
      "azurerm_user_assigned_identity",
    ],
    data: ["azurerm_client_config", "azurerm_kubernetes_cluster"],
  },
  helm: { package: "@cdktf/provider-helm@12.1.2", resources: ["helm_release"], data: [] },
};

// The package, downloaded once.
function fetched(name) {
  const dir = join(cache, name.replace(/[^0-9a-z.-]+/gi, "_"));
  if (!existsSync(join(dir, "package"))) {
    mkdirSync(dir, { recursive: true });
    execFileSync("npm", ["pack", "--silent", name, "--pack-destination", dir], { stdio: ["ignore", "ignore", "inherit"] });
    const archive = readdirSync(dir).find((file) => file.endsWith(".tgz"));
    execFileSync("tar", ["xzf", archive, "--wildcards", "package/package.json", "package/lib/*/index.d.ts"], { cwd: dir });
  }
  return join(dir, "package");
}

// The interfaces of a declaration file: each property with its name in Terraform, whether it must be there, and its type.
function interfaces(text) {
  const found = new Map();
  for (const [, name, body] of text.matchAll(/export interface (\w+)[^{]*\{\n([\s\S]*?)\n\}/g)) {
    const properties = [];
    const property = /#(\w+) \w+#\w+\}[\s\S]*?\*\/\s*readonly \w+(\??):\s*([\s\S]*?);\n(?=\s*(?:\/\*\*|$))/g;
    for (const [, key, optional, type] of (body + "\n").matchAll(property)) {
      properties.push({ key, required: optional === "", type });
    }
    found.set(name, properties);
  }
  return found;
}

function fields(all, name) {
  const found = {};
  for (const { key, required, type } of all.get(name)) {
    const field = {};
    if (required) field.required = true;
    const inner = [...type.matchAll(/\b[A-Z]\w+/g)].map(([word]) => word).find((word) => all.has(word));
    if (inner) field.fields = fields(all, inner);
    found[key] = field;
  }
  return found;
}

// What can be read of it: the getters of its class, in Terraform's spelling.
function attributes(text, name) {
  const body = text.slice(text.search(new RegExp(`export declare class ${name} extends cdktf\\.Terraform(Resource|DataSource)`)));
  const getters = [...body.matchAll(/get (\w+)\(\)/g)].map(([, getter]) => getter).filter((getter) => !getter.endsWith("Input"));
  return getters.map((getter) => getter.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
}

const camel = (words) => words.split("-").map((word) => word[0].toUpperCase() + word.slice(1)).join("");

function read(root, folder) {
  const text = readFileSync(join(root, "lib", folder, "index.d.ts"), "utf8");
  const name = camel(folder);
  const all = interfaces(text);
  const config = all.has(`${name}Config`) ? `${name}Config` : `${name}AConfig`;
  if (!all.has(config)) throw new Error(`${folder}: no interface ${config}`);
  const args = fields(all, config);
  const readable = new Set([...Object.keys(args), ...attributes(text, config.slice(0, -"Config".length))]);
  return { arguments: args, attributes: [...readable].sort() };
}

for (const [provider, { package: name, resources, data }] of Object.entries(providers)) {
  const root = fetched(name);
  const version = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).cdktf.provider.version;
  const folder = (prefix, resource) => prefix + resource.slice(provider.length + 1).replaceAll("_", "-");
  const of = (prefix, names) => Object.fromEntries(names.map((one) => [one, read(root, folder(prefix, one))]));
  const schema = { provider, version, from: name, resource: of("", resources), data: of(`data-${provider}-`, data) };
  writeFileSync(join(here, `${provider}.json`), JSON.stringify(schema, null, 1) + "\n");
  process.stdout.write(`${provider} ${version}: ${resources.length} resources, ${data.length} data sources\n`);
}
