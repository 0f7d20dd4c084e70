"""moto's server with the gaps closed that tests of a node autoscaler need, and with faults on demand.

For tests only.  Usage:  python moto_plus.py -H 127.0.0.1 -p PORT
CreateFleet honours ClientToken: the same token gives the same answer, and IdempotentParameterMismatch for other contents.
Control plane (no extra protocol): plain SSM parameters, readable/writable with any AWS SDK
  /moto-control/fleet-errors  JSON list of rules, first match wins, fields are fnmatch globs:
      [{"instance_type":"m5.*","zone":"us-west-2a","capacity_type":"spot",
        "code":"InsufficientInstanceCapacity","message":"no capacity","times":1}]
  /moto-control/api-errors    JSON {"RunInstances":{"code":"UnauthorizedOperation","message":"..","times":1}}
  /moto-control/fleet-fault   JSON {"mode":"lost","times":3}: the machine is launched and the answer is an HTTP 500;
                              {"mode":"refused","times":1}: it is launched and the answer is a refusal;
                              {"mode":"hold-before"}, {"mode":"hold-after"}: the request waits, before or after the
                              machine is launched, for as long as this is the fault
  /moto-control/hide-new      JSON true: machines launched from now on are hidden from DescribeInstances while it is true
  /moto-control/aws-params    JSON {"/aws/service/...":"ami-..."}   (moto refuses PutParameter under /aws);
                              "error:CODE" instead of an image: SSM answers that code
  /moto-control/prices        JSON {"m5.large":0.096}  served by pricing GetProducts (read from the region
                              named by the regionCode filter; "*.metal*" names answer the bare-metal query)
  /moto-control/spot-prices   JSON {"m5.large":{"us-west-2a":0.03}}  overrides moto's constant 0.00001
  /moto-control/capacity-reservations, /moto-control/placement-groups
                              JSON lists in DescribeX response shape
  /moto-control/zonal-shifts  JSON list in GetManagedResource's shape; the cluster is not registered while it is null
  /moto-control/instance-status   JSON {"i-..":{"InstanceStatus":{...},"SystemStatus":{...},"Events":[...]}}
GET /double/REGION            JSON: what there is in the region (instances, launch templates, instance profiles), how often
                              CreateFleet was asked for and how many of these requests are held, messages of queues
Images: RegisterImage here honours Architecture, TagSpecifications(image) and, through the Description text
  "deprecated=<iso>;created=<iso>", the two dates DescribeImages returns.
"""
import collections, datetime, fnmatch, json, sys, threading, time
from moto.core.responses import ActionResult, BaseResponse
from moto.core.exceptions import JsonRESTError, ServiceException
from moto.ec2.responses import EC2Response
from moto.ec2.responses.fleets import Fleets
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.iam.models import iam_backends
from moto.sqs.models import sqs_backends
from moto.sqs.responses import SQSResponse
from moto.ssm.models import ssm_backends, ParameterDict, Parameter

LOCK = threading.Lock()
USED = {}          # rule text -> times used


def control(acct, region, name, default):
    p = ssm_backends[acct][region]._parameters
    key = "/moto-control/" + name
    try:
        vals = p[key] if dict.__contains__(p, key) else None
        value = json.loads(vals[-1].value) if vals else None
        return default if value is None else value
    except Exception:
        return default


def spend(rule):
    """True while the rule's optional 'times' budget lasts."""
    k = json.dumps(rule, sort_keys=True)
    with LOCK:
        USED[k] = USED.get(k, 0) + 1
        return USED[k] <= rule.get("times", 1 << 30)


# ---- SSM: serve /aws/service/* from the control parameter
_orig_get = ParameterDict.__getitem__
_orig_contains = ParameterDict.__contains__


def _aws_param(self, item):
    if isinstance(item, str) and item.startswith("/aws/service/"):
        v = control(self.account_id, self.region_name, "aws-params", {}).get(item)
        if v and v.startswith("error:"):
            raise JsonRESTError(v.removeprefix("error:"), "as told")
        if v:
            return [Parameter(account_id=self.account_id, name=item, value=v, parameter_type="String",
                              description="", allowed_pattern=None, keyid=None,
                              last_modified_date=1700000000.0, version=1, data_type="text")]


ParameterDict.__getitem__ = lambda s, i: _aws_param(s, i) or _orig_get(s, i)
ParameterDict.__contains__ = lambda s, i: bool(_aws_param(s, i)) or _orig_contains(s, i)


# ---- EC2: CreateFleet with error injection, cheapest-override choice and faithful instances
def fleet_errors(self, cfgs, ct):
    rules = control(self.current_account, self.region, "fleet-errors", [])
    kept, errors = [], []
    for cfg in cfgs:
        spec, left = cfg["LaunchTemplateSpecification"], []
        for o in cfg.get("Overrides") or [{}]:
            hit = next((r for r in rules
                        if fnmatch.fnmatch(o.get("InstanceType", ""), r.get("instance_type", "*"))
                        and fnmatch.fnmatch(o.get("AvailabilityZone", ""), r.get("zone", "*"))
                        and fnmatch.fnmatch(o.get("SubnetId", ""), r.get("subnet", "*"))
                        and fnmatch.fnmatch(ct, r.get("capacity_type", "*")) and spend(r)), None)
            if hit:
                errors.append({"ErrorCode": hit["code"], "ErrorMessage": hit.get("message", hit["code"]),
                               "Lifecycle": "spot" if ct == "spot" else "on-demand",
                               "LaunchTemplateAndOverrides": {"LaunchTemplateSpecification": spec, "Overrides": o}})
            else:
                left.append(o)
        if left:
            kept.append({**cfg, "Overrides": left})
    return kept, errors


ANSWERED = {}      # account, region, client token -> (contents, answer)
HIDDEN = set()     # instances that reads do not show while hide-new is true
BOOTED = {}        # instance -> what it has of the launch template it was launched from
FLEETS = collections.Counter()   # region -> requests for a fleet; (region, "held") -> those that are held
LAUNCHING = threading.Lock()     # the same token twice at a time is one launch


def create_fleet(self):
    if str(self._get_param("DryRun")).lower() != "true":
        FLEETS[self.region] += 1
    maybe_fail(self, "CreateFleet")
    self.error_on_dryrun()
    hold(self, "hold-before")
    token = self._get_param("ClientToken")
    key = (self.current_account, self.region, token)
    contents = json.dumps({k: self._get_param(k) for k in ("LaunchTemplateConfigs", "TargetCapacitySpecification",
                           "SpotOptions", "OnDemandOptions", "TagSpecifications", "Context")}, sort_keys=True, default=str)
    with LAUNCHING:
        known = ANSWERED.get(key) if token else None
        if known and known[0] != contents:
            raise EC2ClientError("IdempotentParameterMismatch", "The client token was used before with other parameters")
        answer = known[1] if known else launch_fleet(self)
        ANSWERED[key] = (contents, answer)
    hold(self, "hold-after")
    fault = control(self.current_account, self.region, "fleet-fault", None)
    if fault and not fault["mode"].startswith("hold") and spend(fault):
        if fault["mode"] == "lost":
            raise LostAnswer("InternalError", "the answer was lost")
        raise EC2ClientError("InvalidParameterValue", "refused after it was done")
    return ActionResult(answer)


def hold(self, mode):
    """Waits while this is the fault. Whoever asked may be gone by then; the request is carried out all the same."""
    def is_held():
        return (control(self.current_account, self.region, "fleet-fault", None) or {}).get("mode") == mode
    if not is_held():
        return
    key = (self.region, "held")
    with LOCK:
        FLEETS[key] += 1
    while is_held():
        time.sleep(0.02)
    with LOCK:
        FLEETS[key] -= 1


class LostAnswer(EC2ClientError):
    code = 500

    def __init__(self, code, message):
        super().__init__(code, message)
        self.code = 500


def launch_fleet(self):
    tcs = self._get_param("TargetCapacitySpecification", {})
    ct = tcs.get("DefaultTargetCapacityType", "on-demand")
    for cfg in self._get_param("LaunchTemplateConfigs", []):     # missing template fails the whole call
        s = cfg["LaunchTemplateSpecification"]
        if "LaunchTemplateName" in s:
            self.ec2_backend.get_launch_template_by_name(name=s["LaunchTemplateName"])
    cfgs, errors = fleet_errors(self, self._get_param("LaunchTemplateConfigs", []), ct)
    if not cfgs:
        return {"FleetId": "fleet-00000000-0000-0000-0000-000000000000", "Errors": errors, "Instances": []}
    # cheapest override wins (Priority carries the price in Karpenter requests)
    best = min(((c, o) for c in cfgs for o in c["Overrides"]), key=lambda x: float(x[1].get("Priority", 0) or 0))
    cfgs = [{**best[0], "Overrides": [best[1]]}]
    mt = {**tcs, "DefaultTargetCapacityType": "spot" if ct == "spot" else "on-demand"}
    fleet = self.ec2_backend.create_fleet(
        on_demand_options=self._get_param("OnDemandOptions", {}), spot_options=self._get_param("SpotOptions", {}),
        target_capacity_specification=mt, launch_template_configs=cfgs,
        excess_capacity_termination_policy="termination", replace_unhealthy_instances=False,
        terminate_instances_with_expiration=True, fleet_type="instant", valid_from=None, valid_until=None,
        tag_specifications=self._get_param("TagSpecifications", []))
    lt = self.ec2_backend.get_launch_template_by_name(name=best[0]["LaunchTemplateSpecification"]["LaunchTemplateName"])
    data = lt.latest_version().data
    groups = (data.get("NetworkInterfaces") or [{}])[0].get("Groups") or data.get("SecurityGroupIds") or []
    sgs = [self.ec2_backend.get_security_group_from_id(g) for g in groups]
    insts = [(x["instance"], None) for x in fleet.on_demand_instances] + [(x.instance, x.id) for x in fleet.spot_requests]
    for inst, sir in insts:
        BOOTED[inst.id] = {"template": lt.name, "user_data": data["UserData"].decode() if data.get("UserData") else "",
                           "profile": (data.get("IamInstanceProfile") or {}).get("Name", "")}
        if sgs:
            inst.security_groups = sgs
            for nic in inst.nics.values():
                nic._group_set = sgs
        if sir:
            inst.spot_instance_request_id = sir
        if control(self.current_account, self.region, "hide-new", False):
            HIDDEN.add(inst.id)
        cr = data.get("CapacityReservationSpecification") or {}
        if cr.get("CapacityReservationTarget"):
            inst.capacity_reservation_id = cr["CapacityReservationTarget"]["CapacityReservationId"]
            inst.capacity_reservation_specification = cr
    return {"FleetId": fleet.id, "Instances": fleet.instances, "Errors": errors}


def maybe_fail(self, action):
    r = control(self.current_account, self.region, "api-errors", {}).get(action)
    if r and spend({**r, "action": action}):
        raise EC2ClientError(r["code"], r.get("message", r["code"]))


# ---- SQS: deletions that fail
_orig_delete_batch = SQSResponse.delete_message_batch


def delete_message_batch(self):
    r = control(self.current_account, self.region, "api-errors", {}).get("DeleteMessageBatch")
    if r and spend({**r, "action": "DeleteMessageBatch"}):
        raise JsonRESTError(r["code"], r.get("message", r["code"]))
    return _orig_delete_batch(self)


SQSResponse.delete_message_batch = delete_message_batch


def listing(action, key, name, ids):
    def f(self):
        maybe_fail(self, action)
        rows = control(self.current_account, self.region, name, [])
        for param, idkey in ids.items():
            want = self._get_param(param, [])
            if want:
                rows = [r for r in rows if r.get(idkey) in want]
            if want and not rows and action == "DescribeCapacityReservations":
                raise EC2ClientError("InvalidCapacityReservationId.NotFound", "The capacity reservation does not exist")
        for flt in self._get_param("Filters", []):
            n, vals = flt["Name"], flt["Values"]
            def val(r):
                if n.startswith("tag:"):
                    return [t["Value"] for t in r.get("Tags", []) if t["Key"] == n[4:]]
                if n == "tag-key":
                    return [t["Key"] for t in r.get("Tags", [])]
                k = "".join(p.capitalize() for p in n.split("-"))
                return [str(r.get(k))]
            rows = [r for r in rows if any(fnmatch.fnmatch(v, g) for v in val(r) for g in vals)]
        return ActionResult({key: rows})
    return f


Fleets.create_fleet = create_fleet
EC2Response.create_fleet = create_fleet
EC2Response.describe_capacity_reservations = listing("DescribeCapacityReservations", "CapacityReservations", "capacity-reservations", {"CapacityReservationIds": "CapacityReservationId"})
EC2Response.describe_placement_groups = listing("DescribePlacementGroups", "PlacementGroups", "placement-groups", {"GroupNames": "GroupName", "GroupIds": "GroupId"})

for name in ("run_instances", "create_launch_template", "describe_subnets", "describe_instances", "terminate_instances",
             "create_tags", "describe_instance_types", "describe_images", "describe_launch_templates"):
    orig = getattr(EC2Response, name)
    def wrap(orig=orig, action="".join(p.capitalize() for p in name.split("_"))):
        def f(self, *a, **k):
            maybe_fail(self, action)
            if action == "DescribeInstanceTypes":
                self.error_on_dryrun()
            return orig(self, *a, **k)
        return f
    setattr(EC2Response, name, wrap())


# ---- reads that lag: machines launched while hide-new was true
_orig_describe = EC2Response.describe_instances


def describe_instances(self):
    res = _orig_describe(self)
    if not control(self.current_account, self.region, "hide-new", False):
        return res
    if any(i in HIDDEN for i in self._get_param("InstanceIds", [])):
        raise EC2ClientError("InvalidInstanceID.NotFound", "The instance ID does not exist")
    kept = []
    for r in res.result["Reservations"]:
        shown = [i for i in r.instances if i.id not in HIDDEN]
        if len(shown) == len(r.instances):
            kept.append(r)
    res.result["Reservations"] = kept
    return res


EC2Response.describe_instances = describe_instances

# ---- images: RegisterImage honours architecture/tags/dates
_orig_register = EC2Response.register_image


def register_image(self):
    res = _orig_register(self)
    ami = self.ec2_backend.amis[res.result["ImageId"]]
    ami.architecture = self._get_param("Architecture") or "x86_64"
    ami.virtualization_type = "hvm"
    ami.root_device_name = self._get_param("RootDeviceName") or "/dev/xvda"
    for spec in self._get_param("TagSpecifications", []):
        if spec.get("ResourceType") == "image":
            ami.add_tags({t["Key"]: t["Value"] for t in spec["Tags"]})
    for part in (self._get_param("Description") or "").split(";"):
        k, _, v = part.partition("=")
        if k == "deprecated":
            ami.deprecation_time = v
        elif k == "created":
            ami.creation_date = datetime.datetime.fromisoformat(v.replace("Z", "+00:00")).replace(tzinfo=None)
    return res


EC2Response.register_image = register_image

# ---- spot prices
PAGE = 100         # prices come in pages, so that nobody reads the first one only


def page(rows, token):
    at = int(token or 0)
    return rows[at:at + PAGE], str(at + PAGE) if at + PAGE < len(rows) else None


_orig_sph = EC2Response.describe_spot_price_history


def describe_spot_price_history(self):
    table = control(self.current_account, self.region, "spot-prices", None)
    if table is None:
        return _orig_sph(self)
    kinds = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"]     # EC2 has a price under one of these names, not under both
    asked = self._get_param("ProductDescriptions", []) or kinds
    rows = [{"AvailabilityZone": z, "InstanceType": it, "ProductDescription": kinds[at % 2],
             "SpotPrice": str(p), "Timestamp": datetime.datetime.now(datetime.timezone.utc)}
            for at, (it, zs) in enumerate(sorted(table.items())) for z, p in zs.items() if kinds[at % 2] in asked]
    rows, more = page(rows, self._get_param("NextToken"))
    return ActionResult({"SpotPriceHistory": rows, "NextToken": more})


EC2Response.describe_spot_price_history = describe_spot_price_history


# ---- instance status
_orig_status = EC2Response.describe_instance_status


def describe_instance_status(self):
    table = control(self.current_account, self.region, "instance-status", {})
    if not table:
        return _orig_status(self)
    rows = [{"InstanceId": i, "InstanceState": {"Name": "running", "Code": 16}, **v} for i, v in table.items()]
    for flt in self._get_param("Filters", []):
        n, vals = flt["Name"], flt["Values"]
        if n == "instance-status.status":
            rows = [r for r in rows if r.get("InstanceStatus", {}).get("Status") in vals]
        elif n == "system-status.status":
            rows = [r for r in rows if r.get("SystemStatus", {}).get("Status") in vals]
        elif n == "event.code":
            rows = [r for r in rows if any(e.get("Code") in vals for e in r.get("Events", []))]
    return ActionResult({"InstanceStatuses": rows})


EC2Response.describe_instance_status = describe_instance_status

# ---- IAM: ListInstanceProfiles honours PathPrefix
from moto.iam.responses import IamResponse


def list_instance_profiles(self):
    pre = self._get_param("PathPrefix") or "/"
    return ActionResult({"InstanceProfiles": [p for p in self.backend.get_instance_profiles() if (p.path or "/").startswith(pre)]})


IamResponse.list_instance_profiles = list_instance_profiles


# ---- what there is, as a test sees it: without the API's errors, delays and hidden machines
def view(region, acct="123456789012"):
    ec2 = ec2_backends[acct][region]
    iam = iam_backends[acct]["aws"]
    return {
        "fleets": FLEETS[region], "held": FLEETS[(region, "held")],
        "instances": [machine(i, dict(ec2.tags.get(i.id, {}))) for r in list(ec2.reservations.values()) for i in list(r.instances)],
        "templates": [{"name": t.name, "tags": dict(ec2.tags.get(t.id, {}))} for t in list(ec2.launch_templates.values())],
        "profiles": [{"name": p.name, "path": p.path, "roles": [r.name for r in p.roles]}
                     for p in list(iam.instance_profiles.values())],
        "messages": {q.name: len(q._messages) for q in list(sqs_backends[acct][region].queues.values())},
    }


def machine(i, tags):
    facts = INSTANCE_TYPES.get(i.instance_type, {})
    return {
        "id": i.id, "state": i._state.name, "type": i.instance_type, "zone": i._placement.zone,
        "spot": bool(getattr(i, "spot_instance_request_id", None)), "dns": i.private_dns_name or "",
        "image": i.image_id, "tags": tags, **BOOTED.get(i.id, {"template": "", "user_data": "", "profile": ""}),
        "vcpus": facts.get("VCpuInfo", {}).get("DefaultVCpus", 0),
        "memory_mib": facts.get("MemoryInfo", {}).get("SizeInMiB", 0),
        "arch": facts.get("ProcessorInfo", {}).get("SupportedArchitectures", [""])[0],
    }


# ---- arc-zonal-shift GetManagedResource (moto has no such service)
def zonal_shifts(environ, start):
    region = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].split("/")[2]
    shifts = control("123456789012", region, "zonal-shifts", None)
    status, body = "200 OK", {"appliedWeights": {}, "zonalShifts": shifts}
    headers = [("Content-Type", "application/json")]
    if shifts is None:
        status, body = "404 Not Found", {"message": "the resource is not registered"}
        headers.append(("x-amzn-ErrorType", "ResourceNotFoundException"))
    data = json.dumps(body).encode()
    start(status, [*headers, ("Content-Length", str(len(data)))])
    return [data]


# ---- pricing GetProducts as a WSGI layer (moto has no pricing service)
class Extra:
    def __init__(self, app):
        self.app = app

    def __call__(self, environ, start):
        path = environ.get("PATH_INFO", "")
        if path.startswith("/double/"):
            data = json.dumps(view(path.removeprefix("/double/"))).encode()
            start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(data)))])
            return [data]
        if path.startswith("/managedresources/"):
            return zonal_shifts(environ, start)
        if environ.get("HTTP_X_AMZ_TARGET", "") == "AWSPriceListService.GetProducts":
            body = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)) or b"{}")
            f = {x["Field"]: x["Value"] for x in body.get("Filters", [])}
            metal = "bare metal" in f.get("productFamily", "")
            table = control("123456789012", f.get("regionCode", "us-east-1"), "prices", {})
            out = [json.dumps({"product": {"attributes": {"instanceType": it}},
                               "terms": {"OnDemand": {"t": {"priceDimensions": {"d": {"pricePerUnit": {"USD": str(p)}}}}}}})
                   for it, p in table.items() if (".metal" in it) == metal]
            out, more = page(out, body.get("NextToken"))
            data = json.dumps({"FormatVersion": "aws_v1", "PriceList": out, **({"NextToken": more} if more else {})}).encode()
            start("200 OK", [("Content-Type", "application/x-amz-json-1.1"), ("Content-Length", str(len(data)))])
            return [data]
        return self.app(environ, start)


if __name__ == "__main__":
    import moto.server as ms
    base = ms.DomainDispatcherApplication
    ms.DomainDispatcherApplication = lambda *a, **k: Extra(base(*a, **k))
    ms.main(sys.argv[1:])
