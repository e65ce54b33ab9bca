//go:build unix

package e2b_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const npmDir = "testdata/npm"

// install brings the SDKs as their lock file has them.
var install = sync.OnceValue(func() error {
	if _, err := os.Stat(filepath.Join(npmDir, "node_modules", versions[1], "package.json")); err == nil {
		return nil
	}
	cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund")
	cmd.Dir = npmDir
	cmd.Stderr = os.Stderr
	return cmd.Run()
})

// sdk is a hub, a machine that works in a folder, and the E2B SDK as published.
type sdk struct {
	*tunneltest.Pair
	*tunneltest.Folder
	version string // one of versions; "" is the newest
}

// newSDK makes one; ask stands for the person, nil allows everything.
func newSDK(t *testing.T, ask func(context.Context, wire.Message) error, options ...tunneltest.Option) *sdk {
	t.Helper()
	if err := install(); err != nil {
		t.Fatalf("npm ci: %v", err)
	}
	folder := &tunneltest.Folder{Dir: t.TempDir(), Ask: ask}
	return &sdk{Pair: tunneltest.New(t, folder.Handle, options...), Folder: folder}
}

// versions are the names under which the SDK is installed: the newest, and the
// oldest that is supported.
var versions = []string{"e2b", "e2b-2.15"}

// everyVersion runs a test with each version of the SDK; s is a machine of its
// own for each.
func everyVersion(t *testing.T, test func(t *testing.T, s *sdk)) {
	for _, v := range versions {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			s := newSDK(t, nil)
			s.version = v
			test(t, s)
		})
	}
}

// js runs a program that uses the SDK and reads what it gives to out() into v.
func (s *sdk) js(t *testing.T, program string, v any, env ...string) {
	t.Helper()
	if s.version == "" {
		s.version = versions[0]
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--input-type=module", "-")
	cmd.Dir = npmDir
	cmd.Env = append(os.Environ(), "E2B_API_KEY="+s.Key, "E2B_API_URL="+s.URL+"/api", "E2B_SANDBOX_URL="+s.URL+"/sbx")
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin = strings.NewReader(`
import * as e2b from '` + s.version + `'
const { Sandbox } = e2b
const out = v => process.stdout.write(JSON.stringify(v))
const sleep = ms => new Promise(r => setTimeout(r, ms))
// failure tells of what a promise throws; null when it does not.
const failure = async p => { try { await p; return null } catch (e) { return { name: e.constructor.name, message: e.message, exitCode: e.exitCode, stdout: e.stdout, stderr: e.stderr } } }
` + program + "\nprocess.exit(0)") // clocks of the SDK are no reason to stay
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("the program failed: %v\n%s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	if err := json.Unmarshal(stdout.Bytes(), v); err != nil {
		t.Fatalf("output %q: %v\n%s", stdout.Bytes(), err, stderr.Bytes())
	}
}

// failure is what an SDK call threw.
type failure struct {
	Name, Message, Stdout, Stderr string
	ExitCode                      int
}

func (f *failure) is(t *testing.T, what, name string, parts ...string) {
	t.Helper()
	if f == nil {
		t.Errorf("%s: nothing was thrown, want %s", what, name)
		return
	}
	if f.Name != name {
		t.Errorf("%s: %s %q was thrown, want %s", what, f.Name, f.Message, name)
	}
	for _, p := range parts {
		if !strings.Contains(f.Message, p) {
			t.Errorf("%s: message %q lacks %q", what, f.Message, p)
		}
	}
}
