package main

import (
	"fmt"
	"strconv"
	"unique"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// InstanceType is one entry of the catalogue as the file spells it.
type InstanceType struct {
	Name                   string                                    `json:"name"`
	Requirements           []v1.NodeSelectorRequirementWithMinValues `json:"requirements"`
	Capacity               corev1.ResourceList                       `json:"capacity"`
	Overhead               Overhead                                  `json:"overhead"`
	Offerings              []Offering                                `json:"offerings"`
	VolumeAttachmentLimits map[string]int                            `json:"volumeAttachmentLimits"`
	DynamicResources       DynamicResources                          `json:"dynamicResources"`
}

// Overhead is what of a machine is not for pods.
type Overhead struct {
	KubeReserved      corev1.ResourceList `json:"kubeReserved"`
	SystemReserved    corev1.ResourceList `json:"systemReserved"`
	EvictionThreshold corev1.ResourceList `json:"evictionThreshold"`
}

// Offering is one way to have a type.
type Offering struct {
	Requirements        []v1.NodeSelectorRequirementWithMinValues `json:"requirements"`
	Price               string                                    `json:"price"`
	Available           bool                                      `json:"available"`
	ReservationCapacity int                                       `json:"reservationCapacity"`
	CapacityOverride    corev1.ResourceList                       `json:"capacityOverride"`
	OverheadOverride    *Overhead                                 `json:"overheadOverride"`
}

// DynamicResources are the devices a type comes with. A template is spelt as the slice its driver will publish.
type DynamicResources struct {
	ResourceSliceTemplates []resourcev1.ResourceSliceSpec `json:"resourceSliceTemplates"`
	AttributeBindings      []struct {
		Attribute resourcev1.QualifiedName `json:"attribute"`
		Devices   []struct {
			Driver string `json:"driver"`
			Pool   string `json:"pool"`
			Device string `json:"device"`
		} `json:"devices"`
	} `json:"attributeBindings"`
}

// catalogue builds upstream's instance types, in the file's order.
func (s *Snapshot) catalogue() ([]*cloudprovider.InstanceType, error) {
	types := make([]*cloudprovider.InstanceType, 0, len(s.InstanceTypes))
	for _, it := range s.InstanceTypes {
		built, err := it.build()
		if err != nil {
			return nil, fmt.Errorf("instanceTypes %q: %w", it.Name, err)
		}
		types = append(types, built)
	}
	return types, nil
}

func (it *InstanceType) build() (*cloudprovider.InstanceType, error) {
	built := &cloudprovider.InstanceType{
		Name:                   it.Name,
		Requirements:           scheduling.NewNodeSelectorRequirementsWithMinValues(it.Requirements...),
		Capacity:               it.Capacity,
		Overhead:               it.Overhead.build(),
		VolumeAttachmentLimits: it.VolumeAttachmentLimits,
		DynamicResources:       it.DynamicResources.build(),
	}
	for i, offering := range it.Offerings {
		offered, err := offering.build()
		if err != nil {
			return nil, fmt.Errorf("offerings[%d]%w", i, err)
		}
		built.Offerings = append(built.Offerings, offered)
	}
	return built, nil
}

func (o *Overhead) build() *cloudprovider.InstanceTypeOverhead {
	return &cloudprovider.InstanceTypeOverhead{
		KubeReserved:      o.KubeReserved,
		SystemReserved:    o.SystemReserved,
		EvictionThreshold: o.EvictionThreshold,
	}
}

func (o *Offering) build() (*cloudprovider.Offering, error) {
	price, err := strconv.ParseFloat(o.Price, 64)
	if err != nil {
		return nil, fmt.Errorf(".price %q is not a number: %w", o.Price, err)
	}
	built := &cloudprovider.Offering{
		Requirements:        scheduling.NewNodeSelectorRequirementsWithMinValues(o.Requirements...),
		Price:               price,
		Available:           o.Available,
		ReservationCapacity: o.ReservationCapacity,
		CapacityOverride:    o.CapacityOverride,
	}
	if o.OverheadOverride != nil {
		built.OverheadOverride = o.OverheadOverride.build()
	}
	return built, nil
}

func (d *DynamicResources) build() cloudprovider.DynamicResources {
	built := cloudprovider.DynamicResources{}
	for i := range d.ResourceSliceTemplates {
		built.ResourceSliceTemplates = append(built.ResourceSliceTemplates, sliceTemplate(&d.ResourceSliceTemplates[i]))
	}
	for _, binding := range d.AttributeBindings {
		bound := &cloudprovider.AttributeBinding{Attribute: binding.Attribute}
		for _, device := range binding.Devices {
			bound.Devices = append(bound.Devices, cloudprovider.DeviceID{
				Driver: unique.Make(device.Driver), Pool: unique.Make(device.Pool), Device: unique.Make(device.Device),
			})
		}
		built.AttributeBindings = append(built.AttributeBindings, bound)
	}
	return built
}

func sliceTemplate(spec *resourcev1.ResourceSliceSpec) *cloudprovider.ResourceSliceTemplate {
	template := &cloudprovider.ResourceSliceTemplate{
		Driver:         unique.Make(spec.Driver),
		Pool:           cloudprovider.ResourcePool{Name: unique.Make(spec.Pool.Name)},
		SharedCounters: spec.SharedCounters,
	}
	for _, device := range spec.Devices {
		template.Devices = append(template.Devices, cloudprovider.Device{
			Name:                     unique.Make(device.Name),
			Attributes:               device.Attributes,
			Capacity:                 device.Capacity,
			AllowMultipleAllocations: device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations,
			ConsumesCounters:         device.ConsumesCounters,
		})
	}
	return template
}
