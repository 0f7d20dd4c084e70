package main

import (
	"flag"
	"fmt"
	"math/rand"
)

// runDraws prints raw draws of the generator upstream's benchmark seeds. 607 of them determine all later ones: the
// generator adds its 607th and 273rd last outputs.
func runDraws(args []string) error {
	flags := flag.NewFlagSet("draws", flag.ContinueOnError)
	seed := flags.Int64("seed", 42, "seed of math/rand")
	count := flags.Int("n", 607, "how many draws")
	if err := flags.Parse(args); err != nil {
		return err
	}
	source := rand.NewSource(*seed).(rand.Source64)
	for range *count {
		fmt.Printf("%016x\n", source.Uint64())
	}
	return nil
}
