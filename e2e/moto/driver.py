"""What a test does to moto's AWS from outside.

Usage:  python driver.py URL REGION seed CLUSTER QUEUE     networks, image, role, cluster, queue and rules; says what was made
        python driver.py URL REGION instances             every instance, as JSON
        python driver.py URL REGION interrupt INSTANCE    a spot interruption warning, through EventBridge
        python driver.py URL REGION control NAME JSON     a control of moto_plus.py
        python driver.py URL REGION messages QUEUE        how many messages the queue holds
"""
import json
import sys

import boto3

URL, REGION, COMMAND, *ARGS = sys.argv[1:]
RULES = {
    "spot": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "state": ("aws.ec2", "EC2 Instance State-change Notification"),
    "health": ("aws.health", "AWS Health Event"),
    "reservation": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}


def client(service):
    return boto3.client(service, region_name=REGION, endpoint_url=URL, aws_access_key_id="test",
                        aws_secret_access_key="test")


def control(name, value):
    client("ssm").put_parameter(Name="/moto-control/" + name, Value=json.dumps(value), Type="String", Overwrite=True)


def seed(cluster, queue):
    ec2, tag = client("ec2"), [{"Key": "karpenter.sh/discovery", "Value": cluster}]
    subnets = [s["SubnetId"] for s in ec2.describe_subnets()["Subnets"]]
    ec2.create_tags(Resources=subnets, Tags=tag)
    group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
    ec2.create_tags(Resources=[group], Tags=tag)
    image = ec2.register_image(Name="amazon-eks-node-al2023-x86_64-standard-1.36-v20261101", Architecture="x86_64",
                               RootDeviceName="/dev/xvda")["ImageId"]
    path = "/aws/service/eks/optimized-ami/1.%d/amazon-linux-2023/x86_64/standard/recommended/image_id"
    control("aws-params", {path % minor: image for minor in range(30, 40)})
    role = "KarpenterNodeRole-" + cluster
    client("iam").create_role(RoleName=role, AssumeRolePolicyDocument="{}")
    client("eks").create_cluster(name=cluster, roleArn="arn:aws:iam::123456789012:role/cluster",
                                 resourcesVpcConfig={"subnetIds": subnets})
    sqs, events = client("sqs"), client("events")
    url = sqs.create_queue(QueueName=queue)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    for name, (source, detail_type) in RULES.items():
        events.put_rule(Name=name, EventPattern=json.dumps({"source": [source], "detail-type": [detail_type]}))
        events.put_targets(Rule=name, Targets=[{"Id": "queue", "Arn": arn}])
    return {"image": image, "role": role, "group": group, "subnets": subnets}


def instances():
    pages = client("ec2").get_paginator("describe_instances").paginate()
    return [
        {
            "id": i["InstanceId"], "state": i["State"]["Name"], "type": i["InstanceType"],
            "zone": i["Placement"]["AvailabilityZone"], "spot": "SpotInstanceRequestId" in i,
            "dns": i.get("PrivateDnsName", ""), "tags": {t["Key"]: t["Value"] for t in i.get("Tags", [])},
        }
        for page in pages for r in page["Reservations"] for i in r["Instances"]
    ]


def interrupt(instance):
    detail = {"instance-id": instance, "instance-action": "terminate"}
    source, detail_type = RULES["spot"]
    answer = client("events").put_events(Entries=[{"Source": source, "DetailType": detail_type,
                                                   "Detail": json.dumps(detail), "EventBusName": "default"}])
    return {"failed": answer["FailedEntryCount"]}


def messages(queue):
    sqs = client("sqs")
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    return sum(int(n) for n in sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"].values())


COMMANDS = {"seed": seed, "instances": instances, "interrupt": interrupt, "messages": messages,
            "control": lambda name, value: control(name, json.loads(value))}
print(json.dumps(COMMANDS[COMMAND](*ARGS)))
