//go:build linux

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/app/apptest"
)

// screenModel plays the model behind Anthropic's API: one turn after the other,
// in the shape of the toolset.
type screenModel struct {
	mu    sync.Mutex
	turns []string // the blocks of each; guarded by mu
	heard []string // the results that came for each; guarded by mu
}

func (m *screenModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || len(q.Messages) == 0 {
		http.Error(w, "not a conversation", http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(q.Messages) > 1 {
		m.heard = append(m.heard, string(q.Messages[len(q.Messages)-1].Content))
	}
	if n := len(m.heard); n < len(m.turns) {
		fmt.Fprintf(w, `{"stop_reason":"tool_use","content":[%s]}`, m.turns[n])
		return
	}
	fmt.Fprint(w, `{"stop_reason":"end_turn","content":[{"type":"text","text":"The note is written."}]}`)
}

func action(id, name, input string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"toolset_name":"computer","input":{%s}}`, id, name, input)
}

// localpc-hub claude, with a key of the hub inside: its person shares the screen
// and lends mouse and keyboard by the mouse, and another program reads what the
// model typed.
func TestClaudeOnTheScreen(t *testing.T) {
	t.Parallel()
	p := startForAgent(t, apptest.Options{})
	p.pair()
	note := p.reader("note", "40x8+40+560")
	x, y := note.middle()
	m := &screenModel{turns: []string{
		action("a", "screenshot", ""),
		action("b", "left_click", fmt.Sprintf(`"coordinate":[%d,%d]`, x, y)) + "," + action("c", "type", `"text":"Grüße, 世界\n"`),
		action("d", "left_click", `"coordinate":[9999,1]`) + "," + action("e", "type", `"text":"never"`),
	}}
	api := httptest.NewServer(m)
	defer api.Close()
	cmd := p.d.Command(filepath.Join(p.bin, "localpc-hub"), "claude", "Write a note.", "--hub", "http://"+p.addr, "--api", api.URL)
	cmd.Env = append(cmd.Env, "LOCALPC_KEY="+strings.TrimPrefix(p.key("Claude")[0], "E2B_API_KEY="), "ANTHROPIC_API_KEY=sk-ant-test")
	claude := p.d.StartCmd("claude", cmd)

	p.d.WaitWindow(2*time.Minute, cardTitle)
	// One card follows the other at once.
	p.press(p.card("Claude is requesting screen access"), "Allow", "for", "this", "session")
	c := p.card("Claude wants to use mouse and keyboard")
	r, _ := c.Rect()
	r.Max.Y -= 70 // above its buttons
	p.d.In(r).ClickText("This", "session")
	p.allowedForSession(c)
	if code := claude.ExitCode(2 * time.Minute); code != 0 || !strings.Contains(claude.Output(), "The note is written.") {
		t.Fatalf("it ended with %d:\n%s", code, claude.Output())
	}
	note.has("Grüße, 世界\n")
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.heard) != 3 {
		t.Fatalf("the model heard %d times", len(m.heard))
	}
	for i, want := range []string{`"image/jpeg"`, "Typed 10 characters.", "Not executed: an earlier computer action in this turn failed."} {
		if !strings.Contains(m.heard[i], want) {
			t.Errorf("in turn %d the model heard %.600s, without %q", i+1, m.heard[i], want)
		}
	}
	// What it saw after it had typed is the screen as it was then.
	var results []struct {
		Content []struct {
			Source struct{ Data string }
		}
	}
	if err := json.Unmarshal([]byte(m.heard[1]), &results); err != nil || len(results) != 2 {
		t.Fatalf("the second turn is answered with %.300s, %v", m.heard[1], err)
	}
	parts := results[1].Content
	if data, err := base64.StdEncoding.DecodeString(parts[len(parts)-1].Source.Data); err != nil || len(data) < 1000 {
		t.Errorf("the last picture has %d bytes, %v", len(data), err)
	}
}
