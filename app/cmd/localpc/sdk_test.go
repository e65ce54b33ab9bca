//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// sdkDir holds the E2B SDK as npm has it.
const sdkDir = "../../../tunnel/hub/e2b/testdata/npm"

// sdk is a program that uses the E2B SDK, unmodified, in a process of its own:
// the agent's side.
type sdk struct {
	t   testing.TB
	in  io.WriteCloser
	env []string
	cmd *exec.Cmd
	mu  sync.Mutex
	n   int
	all map[int]*reply
}

// reply is what became of one call.
type reply struct {
	t    testing.TB
	what string
	done chan struct{}
	mu   sync.Mutex
	out  string // streamed so far

	Value    json.RawMessage `json:"value"`
	Error    string          `json:"error"`
	Name     string          `json:"name"`
	ExitCode *int            `json:"exitCode"`
}

// newSDK starts it with the lines that the Pair window gave.
func newSDK(t testing.TB, env []string) *sdk {
	t.Helper()
	dir, err := filepath.Abs(sdkDir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "e2b")); err != nil {
		t.Fatalf("the E2B SDK is not installed: run make npm (%v)", err)
	}
	cmd := exec.Command("node", "testdata/driver.mjs", dir)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &sdk{t: t, in: in, env: env, cmd: cmd, all: map[int]*reply{}}
	read := make(chan struct{})
	go func() { defer close(read); s.read(out) }()
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	})
	return s
}

// kill ends the program in the middle of whatever it does.
func (s *sdk) kill() { _ = s.cmd.Process.Kill() }

func (s *sdk) read(out io.Reader) {
	sc := bufio.NewScanner(out)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var m struct {
			ID     int    `json:"id"`
			Done   bool   `json:"done"`
			Stdout string `json:"stdout"`
		}
		if json.Unmarshal(sc.Bytes(), &m) != nil {
			continue
		}
		s.mu.Lock()
		r := s.all[m.ID]
		s.mu.Unlock()
		if r == nil {
			continue
		}
		r.mu.Lock()
		if m.Done {
			_ = json.Unmarshal(sc.Bytes(), r)
			close(r.done)
		} else {
			r.out += m.Stdout
		}
		r.mu.Unlock()
	}
}

// start begins a call; wait for it with done or failed.
func (s *sdk) start(op string, args map[string]any) *reply {
	s.t.Helper()
	s.mu.Lock()
	s.n++
	id := s.n
	r := &reply{t: s.t, what: op, done: make(chan struct{})}
	s.all[id] = r
	s.mu.Unlock()
	b, err := json.Marshal(map[string]any{"id": id, "op": op, "args": args})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.in.Write(append(b, '\n')); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// streamed is the output that has come so far.
func (r *reply) streamed() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out
}

func (r *reply) wait(limit time.Duration) {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(limit):
		r.t.Fatalf("%s: no answer within %s", r.what, limit)
	}
}

// ok waits and returns the value; an error ends the test.
func (r *reply) ok(limit time.Duration) string {
	r.t.Helper()
	r.wait(limit)
	if r.Error != "" {
		r.t.Fatalf("%s failed: %s (%s)", r.what, r.Error, r.Name)
	}
	return string(r.Value)
}

// failed waits and checks that the error says want.
func (r *reply) failed(limit time.Duration, want string) {
	r.t.Helper()
	r.wait(limit)
	if r.Error == "" {
		r.t.Fatalf("%s worked with %s; want the error %q", r.what, r.Value, want)
	}
	if !strings.Contains(r.Error, want) {
		r.t.Fatalf("%s failed with %q (%s); want %q in it", r.what, r.Error, r.Name, want)
	}
}

// text is a JSON string value.
func text(t testing.TB, raw string) string {
	t.Helper()
	var s string
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		t.Fatalf("%s is not a string: %v", raw, err)
	}
	return s
}

// result is what commands.run gave.
type result struct {
	ExitCode       int `json:"exitCode"`
	Stdout, Stderr string
}

func resultOf(t testing.TB, raw string) result {
	t.Helper()
	var r result
	if err := json.Unmarshal([]byte(raw), &r); err != nil {
		t.Fatalf("%s is not a result: %v", raw, err)
	}
	return r
}
