package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	// The kinds a snapshot may hold beside the built-in ones register themselves with the scheme.
	_ "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	_ "sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// Snapshot is the file described in docs/snapshot-file.md.
type Snapshot struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name    string    `json:"name"`
		TakenAt time.Time `json:"takenAt"`
		Origin  string    `json:"origin"`
	} `json:"metadata"`
	Settings              Settings            `json:"settings"`
	Objects               []json.RawMessage   `json:"objects"`
	InstanceTypes         []InstanceType      `json:"instanceTypes"`
	NodePoolInstanceTypes map[string][]string `json:"nodePoolInstanceTypes"`
	WellKnownLabels       []string            `json:"wellKnownLabels"`
}

// Settings are the options that change a decision; absent means upstream's default.
type Settings struct {
	PreferencePolicy   options.PreferencePolicy          `json:"preferencePolicy"`
	MinValuesPolicy    options.MinValuesPolicy           `json:"minValuesPolicy"`
	IgnoreDRARequests  *bool                             `json:"ignoreDRARequests"`
	FeatureGates       map[string]bool                   `json:"featureGates"`
	DefaultConstraints []corev1.TopologySpreadConstraint `json:"defaultConstraints"`
}

// readSnapshot reads FILE, gzipped when its name ends in .gz. A field of the file itself that nobody here knows is an
// error: it means that the file's other reader knows more than this one. Objects are not the file's own.
func readSnapshot(path string) (*Snapshot, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var reader io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if reader, err = gzip.NewReader(file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	snapshot := &Snapshot{}
	decoder := json.NewDecoder(reader)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(snapshot); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if snapshot.Kind != "Snapshot" || snapshot.APIVersion != "dovetail.dev/v1alpha1" {
		return nil, fmt.Errorf("%s: is a %s %s, not a dovetail.dev/v1alpha1 Snapshot", path, snapshot.APIVersion, snapshot.Kind)
	}
	return snapshot, nil
}

// decode turns the objects into typed ones; kinds nobody here knows (node classes of a cloud, say) are counted.
func (s *Snapshot) decode() (objects []client.Object, skipped int, err error) {
	decoder := scheme.Codecs.UniversalDeserializer()
	for i, raw := range s.Objects {
		object, _, err := decoder.Decode(raw, nil, nil)
		if runtime.IsNotRegisteredError(err) {
			skipped++
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("objects[%d]: %w", i, err)
		}
		typed, ok := object.(client.Object)
		if !ok {
			return nil, 0, fmt.Errorf("objects[%d]: is a list, write its items one by one", i)
		}
		objects = append(objects, typed)
	}
	return objects, skipped, nil
}

// options are the operator's options the file stands for.
func (s *Snapshot) options(workers int) (*options.Options, error) {
	var gates []string
	for name, on := range s.Settings.FeatureGates {
		gates = append(gates, fmt.Sprintf("%s=%t", name, on))
	}
	featureGates, err := options.ParseFeatureGates(strings.Join(gates, ","))
	if err != nil {
		return nil, fmt.Errorf("settings.featureGates: %w", err)
	}
	scheduler := &options.SchedulerConfiguration{
		PodTopologySpread: &options.PodTopologySpreadConfig{DefaultConstraints: s.Settings.DefaultConstraints},
	}
	if err := scheduler.Validate(); err != nil {
		return nil, fmt.Errorf("settings.defaultConstraints: %w", err)
	}
	result := &options.Options{
		CPURequests:       int64(workers) * 1000,
		BatchMaxDuration:  10 * time.Second,
		BatchIdleDuration: time.Second,
		PreferencePolicy:  options.PreferencePolicyRespect,
		MinValuesPolicy:   options.MinValuesPolicyStrict,
		IgnoreDRARequests: true,
		FeatureGates:      featureGates,
		SchedulerConfig:   scheduler,
	}
	if s.Settings.PreferencePolicy != "" {
		result.PreferencePolicy = s.Settings.PreferencePolicy
	}
	if s.Settings.MinValuesPolicy != "" {
		result.MinValuesPolicy = s.Settings.MinValuesPolicy
	}
	if s.Settings.IgnoreDRARequests != nil {
		result.IgnoreDRARequests = *s.Settings.IgnoreDRARequests
	}
	return result, nil
}

// What upstream's package-level registries hold before any cloud adds to them.
var (
	wellKnownAtFirst    = v1.WellKnownLabels.Clone()
	reservedAtFirst     = cloudprovider.ReservedCapacityLabels.Clone()
	reservationIDBefore = cloudprovider.ReservationIDLabel
)

// registerLabels tells upstream's package-level registries which labels this cloud adds. The reservation id has no
// field of its own in the file: it is the label of a reserved offering whose key ends in "reservation-id".
func (s *Snapshot) registerLabels() {
	v1.WellKnownLabels = wellKnownAtFirst.Clone()
	cloudprovider.ReservedCapacityLabels = reservedAtFirst.Clone()
	cloudprovider.ReservationIDLabel = reservationIDBefore
	v1.WellKnownLabels.Insert(s.WellKnownLabels...)
	for _, it := range s.InstanceTypes {
		for _, offering := range it.Offerings {
			for _, requirement := range offering.Requirements {
				if strings.HasSuffix(requirement.Key, "reservation-id") {
					v1.WellKnownLabels.Insert(requirement.Key)
					cloudprovider.ReservationIDLabel = requirement.Key
					cloudprovider.ReservedCapacityLabels.Insert(requirement.Key)
				}
			}
		}
	}
}
