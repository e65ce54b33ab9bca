package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"localpc/tunnel/hub/claude"
)

// The models that are asked unless --model names one: a tool is known to some
// models only.
var claudeModels = map[claude.Shape]string{claude.Toolset: "claude-sonnet-5-5", claude.Tool: "claude-sonnet-4-6"}

// Keys come from the environment: a command line can be read by everybody here.
const (
	hubKeyEnv = "LOCALPC_KEY"
	apiKeyEnv = "ANTHROPIC_API_KEY"
	apiEnv    = "ANTHROPIC_BASE_URL"
)

// settle is how long a program on the screen has to show what an action did.
const settle = 700 * time.Millisecond

// noMonitor stands for the first screen that the person shares.
const noMonitor = -2

// claudeFlags are those of the command claude.
type claudeFlags struct {
	hub, machine, model, api, tool string
	turns, monitor                 int
}

func (c *claudeFlags) flags(f *flag.FlagSet) {
	f.StringVar(&c.hub, "hub", "http://127.0.0.1:4417", "")
	f.StringVar(&c.machine, "machine", "", "")
	f.StringVar(&c.model, "model", "", "")
	f.StringVar(&c.api, "api", "", "")
	f.StringVar(&c.tool, "tool", string(claude.Toolset), "")
	f.IntVar(&c.turns, "turns", 50, "")
	f.IntVar(&c.monitor, "monitor", noMonitor, "")
}

// claude has Claude do a task on a computer, and prints what happens: an example
// of the package of that name.
func (c *cli) claude(ctx context.Context) error {
	o := c.claudes
	shape := claude.Shape(o.tool)
	model, known := claudeModels[shape]
	if !known {
		return errUsage(fmt.Sprintf("--tool must be %s or %s, not %q", claude.Toolset, claude.Tool, o.tool))
	}
	if o.model != "" {
		model = o.model
	}
	if o.turns < 1 {
		return errUsage("--turns must be 1 or more")
	}
	hubKey, apiKey := os.Getenv(hubKeyEnv), os.Getenv(apiKeyEnv)
	switch {
	case hubKey == "":
		return errUsage("set " + hubKeyEnv + " to a key of the hub; localpc-hub key add makes one")
	case apiKey == "":
		return errUsage("set " + apiKeyEnv + " to a key of Anthropic's API")
	}
	if o.api == "" {
		o.api = os.Getenv(apiEnv)
	}
	if !strings.Contains(o.hub, "://") {
		o.hub = "https://" + o.hub
	}

	var mu sync.Mutex // what a call waits for is told beside it
	last := ""
	say := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(c.out, printable(line))
		last = ""
	}
	waiting := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		if line != last {
			fmt.Fprintln(c.out, "  "+printable(line))
		}
		last = line
	}
	hub, err := claude.Dial(ctx, claude.Hub{Address: o.hub, Key: hubKey, Waiting: waiting})
	if err != nil {
		return err
	}
	defer hub.Close()
	a := claude.Options{Tools: hub, Shape: shape, Machine: o.machine, Show: true, Settle: settle, Waiting: waiting}
	if o.monitor != noMonitor {
		a.Monitor = &o.monitor
	}
	loop := &claude.Loop{API: o.api, Key: apiKey, Model: model, MaxTurns: o.turns, Say: say, Adapter: claude.New(a)}
	if _, err = loop.Run(ctx, c.args[1]); errors.Is(err, context.Canceled) {
		return errors.New("stopped")
	}
	return err
}

// printable keeps what a model said from doing anything to a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, s)
}
