"""What an account has before anybody launches: networks, images, the role of nodes, the cluster, the queue and its rules.

Usage:  python seed.py URL REGION CLUSTER QUEUE RELEASE     says what was made
Everything is called as the user's document calls it: the tag karpenter.sh/discovery, the role KarpenterNodeRole-CLUSTER.
RELEASE is a release of the images of AL2023 such as v20261110; the latest is the same.
"""
import json
import sys

import boto3

URL, REGION, CLUSTER, QUEUE, RELEASE = sys.argv[1:]
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


def images(ec2):
    made, parameters = {}, {}
    for arch in ("x86_64", "arm64"):
        name = "amazon-eks-node-al2023-%s-standard-1.%d-" + RELEASE
        made[arch] = ec2.register_image(Name=name % (arch, 36), Architecture=arch, RootDeviceName="/dev/xvda")["ImageId"]
        for minor in range(30, 40):
            path = "/aws/service/eks/optimized-ami/1.%d/amazon-linux-2023/%s/standard/%s/image_id"
            for release in ("recommended", name % (arch, minor)):
                parameters[path % (minor, arch, release)] = made[arch]
    client("ssm").put_parameter(Name="/moto-control/aws-params", Value=json.dumps(parameters), Type="String",
                                Overwrite=True, Tier="Advanced")
    return made


def queue():
    sqs, events = client("sqs"), client("events")
    url = sqs.create_queue(QueueName=QUEUE)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    for name, (source, detail_type) in RULES.items():
        events.put_rule(Name=name, EventPattern=json.dumps({"source": [source], "detail-type": [detail_type]}))
        events.put_targets(Rule=name, Targets=[{"Id": "queue", "Arn": arn}])
    return url


def seed():
    ec2, tag = client("ec2"), [{"Key": "karpenter.sh/discovery", "Value": CLUSTER}]
    subnets = [s["SubnetId"] for s in ec2.describe_subnets()["Subnets"]]
    ec2.create_tags(Resources=subnets, Tags=tag)
    group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
    ec2.create_tags(Resources=[group], Tags=tag)
    role = "KarpenterNodeRole-" + CLUSTER
    client("iam").create_role(RoleName=role, AssumeRolePolicyDocument="{}")
    client("eks").create_cluster(name=CLUSTER, roleArn="arn:aws:iam::123456789012:role/cluster",
                                 resourcesVpcConfig={"subnetIds": subnets})
    return {"images": images(ec2), "role": role, "group": group, "subnets": subnets, "queue": queue()}


print(json.dumps(seed()))
