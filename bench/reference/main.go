// Command reference is the oracle every comparison of ours is made against: it reads a snapshot file, lets the published
// Karpenter module decide, and prints what it decided as JSON. It holds no scheduling logic of its own.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

const usage = `usage: reference COMMAND

  solve FILE [--workers N] [--repeat N] [--log]
                                          what upstream's scheduler plans for the pending pods, and each of its steps
  serve                                   questions as JSON lines on stdin (file, runs, workers, log), plans on stdout
  consolidate FILE                        what upstream's emptiness, multi-node and single-node consolidation decide
  algebra                                 requirement cases as JSON lines on stdin, upstream's answers on stdout
  draws --seed S -n N                     the first N 64-bit draws of Go's math/rand, one hexadecimal word per line
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "reference: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no command given\n%s", usage)
	}
	switch command, rest := args[0], args[1:]; command {
	case "solve":
		return runSolve(rest)
	case "serve":
		return runServe(os.Stdin, os.Stdout)
	case "consolidate":
		return runConsolidate(rest)
	case "algebra":
		return runAlgebra(os.Stdin, os.Stdout)
	case "draws":
		return runDraws(rest)
	default:
		return fmt.Errorf("unknown command %q\n%s", command, usage)
	}
}

// parse reads flags that may stand before or after the file, and returns the one file.
func parse(flags *flag.FlagSet, args []string) (string, error) {
	var files []string
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return "", err
		}
		if args = flags.Args(); len(args) > 0 {
			files, args = append(files, args[0]), args[1:]
		}
	}
	if len(files) != 1 {
		return "", fmt.Errorf("%s wants exactly one snapshot file, got %d", flags.Name(), len(files))
	}
	return files[0], nil
}

func printJSON(value any) error {
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
