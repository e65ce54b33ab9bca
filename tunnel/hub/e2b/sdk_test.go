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

	"localpc/tunnel/tunneltest"
)

const npmDir = "testdata/npm"

var install = sync.OnceValue(func() error {
	if _, err := os.Stat(filepath.Join(npmDir, "node_modules", "e2b", "package.json")); err == nil {
		return nil
	}
	cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund")
	cmd.Dir = npmDir
	cmd.Stderr = os.Stderr
	return cmd.Run()
})

// sdk is a hub, a machine and the published E2B SDK.
type sdk struct {
	*tunneltest.Pair
	*tunneltest.Folder
}

func newSDK(t *testing.T, options ...tunneltest.Option) *sdk {
	t.Helper()
	if err := install(); err != nil {
		t.Fatalf("npm ci: %v", err)
	}
	folder := &tunneltest.Folder{Dir: t.TempDir()}
	return &sdk{tunneltest.New(t, folder.Handle, options...), folder}
}

// js runs a program that uses the SDK as published, and reads what it gives to
// out() into v.
func (s *sdk) js(t *testing.T, program string, v any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--input-type=module", "-")
	cmd.Dir = npmDir
	cmd.Env = append(os.Environ(), "E2B_API_KEY="+s.Key, "E2B_API_URL="+s.URL+"/api", "E2B_SANDBOX_URL="+s.URL+"/sbx")
	cmd.Stdin = strings.NewReader(`
import * as e2b from 'e2b'
const { Sandbox } = e2b
const out = v => process.stdout.write(JSON.stringify(v))
// failure gives the name and text of what a promise throws.
const failure = async p => { try { await p; return null } catch (e) { return { name: e.constructor.name, message: e.message, exitCode: e.exitCode, stdout: e.stdout, stderr: e.stderr } } }
` + program)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("the program failed: %v\n%s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	if err := json.Unmarshal(stdout.Bytes(), v); err != nil {
		t.Fatalf("output %q: %v", stdout.Bytes(), err)
	}
}

type failure struct {
	Name, Message, Stdout, Stderr string
	ExitCode                      *int
}

func TestSDKFirstPath(t *testing.T) {
	t.Parallel()
	s := newSDK(t)
	var got struct {
		Run, Read, Written string
		Killed, Again      bool
	}
	s.js(t, `
const s = await Sandbox.create()
const r = await s.commands.run('echo hi; cat > f.txt <<< "from a command"')
await s.files.write('notes/a.txt', 'from the SDK')
const written = await s.commands.run('cat notes/a.txt')
out({ run: r.stdout, read: await s.files.read('f.txt'), written: written.stdout, killed: await s.kill(), again: await s.kill() })
`, &got)
	if got.Run != "hi\n" || got.Read != "from a command\n" || got.Written != "from the SDK" || !got.Killed || got.Again {
		t.Errorf("got %+v", got)
	}
	if open := s.Sessions(); len(open) != 0 {
		t.Errorf("sessions still open on the machine: %v", open)
	}
}
