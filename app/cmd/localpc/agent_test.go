//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/app/apptest"
	"localpc/app/control"
	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/tunnel/hub/mcp"
)

// agent is an MCP client of the hub inside, as a program connects it by its
// address, and asks for screen, mouse and keyboard.
type agent struct {
	p *program
	s *mcpsdk.ClientSession
	n int
}

// bearer adds a key to each request.
type bearer string

func (k bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// agentAt connects one to a hub, with a key.
func agentAt(t testing.TB, p *program, address, key string) *agent {
	t.Helper()
	client := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "screen-agent", Version: "1"}, &mcpsdk.ClientOptions{Capabilities: &mcpsdk.ClientCapabilities{}})
	s, err := client.Connect(t.Context(), &mcpsdk.StreamableClientTransport{Endpoint: address + "/mcp", HTTPClient: &http.Client{Transport: bearer(key)}, DisableStandaloneSSE: true, MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &agent{p: p, s: s}
}

// agent pairs the program with the hub inside, and connects one.
func (p *program) agent(name string) *agent {
	p.t.Helper()
	p.pair()
	return agentAt(p.t, p, "http://"+p.addr, strings.TrimPrefix(p.key(name)[0], "E2B_API_KEY="))
}

// got is what one call gave.
type got struct {
	text    string
	failed  bool
	image   image.Image
	picture mcp.Picture
	bytes   int // of its file
	// decoding is how long the test took to look at it.
	decoding time.Duration
}

// at is the picture's pixel that shows a pixel of the screen.
func (g got) at(t testing.TB, x, y int) []int {
	t.Helper()
	p, ok := g.picture.In(x, y)
	if !ok {
		t.Fatalf("picture %+v does not show (%d, %d)", g.picture, x, y)
	}
	return p[:]
}

// dark is how much of an area of the screen is black in the picture: 0 to 1.
func (g got) dark(t testing.TB, area image.Rectangle) float64 {
	t.Helper()
	from, to := g.at(t, area.Min.X+4, area.Min.Y+4), g.at(t, area.Max.X-4, area.Max.Y-4)
	black, all := 0, 0
	for y := from[1]; y < to[1]; y++ {
		for x := from[0]; x < to[0]; x++ {
			r, gr, b, _ := g.image.At(g.image.Bounds().Min.X+x, g.image.Bounds().Min.Y+y).RGBA()
			if all++; r < 0x1000 && gr < 0x1000 && b < 0x1000 {
				black++
			}
		}
	}
	if all == 0 {
		t.Fatalf("there is nothing of %v in the picture", area)
	}
	return float64(black) / float64(all)
}

// start begins one call; the channel has what it gave.
func (a *agent) start(tool string, args map[string]any) chan got {
	out := make(chan got, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		res, err := a.s.CallTool(ctx, &mcpsdk.CallToolParams{Name: tool, Arguments: args})
		for err == nil { // a person who takes long is waited for
			kept, _ := res.StructuredContent.(map[string]any)
			if kept["status"] != "pending" {
				break
			}
			res, err = a.s.CallTool(ctx, &mcpsdk.CallToolParams{Name: "get_result", Arguments: map[string]any{"id": kept["id"]}})
		}
		if err != nil {
			out <- got{text: err.Error(), failed: true}
			return
		}
		g := got{failed: res.IsError}
		for _, c := range res.Content {
			switch c := c.(type) {
			case *mcpsdk.TextContent:
				g.text += c.Text
			case *mcpsdk.ImageContent:
				began := time.Now()
				g.image, _, err = image.Decode(bytes.NewReader(c.Data))
				g.bytes, g.decoding = len(c.Data), time.Since(began)
				if err != nil {
					g.text, g.failed = "the picture can't be read: "+err.Error(), true
				}
			}
		}
		if meta, ok := res.Meta[mcp.PictureMeta]; ok {
			b, _ := json.Marshal(meta)
			_ = json.Unmarshal(b, &g.picture)
		}
		out <- g
	}()
	return out
}

// asked is the card that a call waits for.
func (a *agent) asked(c chan got, sentences ...string) *apptest.Area {
	a.p.t.Helper()
	if !a.p.d.Until(30*time.Second, func() bool {
		_, shown := a.p.d.FindWindow(cardTitle)
		return shown || len(c) > 0
	}) || len(c) > 0 {
		a.p.d.Screenshot("no-card")
		if len(c) > 0 {
			a.p.t.Fatalf("nobody was asked %q: the call gave %+v", sentences, <-c)
		}
		a.p.t.Fatalf("nobody was asked %q", sentences)
	}
	return a.p.card(sentences...)
}

func (a *agent) wait(c chan got) got {
	a.p.t.Helper()
	select {
	case g := <-c:
		return g
	case <-time.After(2 * time.Minute):
		a.p.d.Screenshot("no-answer")
		a.p.t.Fatal("a call was not answered")
		return got{}
	}
}

// call is a call that has to work; refused one that must not, and says why.
func (a *agent) call(tool string, args map[string]any) got {
	a.p.t.Helper()
	g := a.wait(a.start(tool, args))
	if g.failed {
		a.p.d.Screenshot("refused")
		a.p.t.Fatalf("%s %v: %s", tool, args, g.text)
	}
	return g
}

func (a *agent) refused(why, tool string, args map[string]any) {
	a.p.t.Helper()
	g := a.wait(a.start(tool, args))
	if !g.failed || !strings.Contains(g.text, why) {
		a.p.d.Screenshot("not-refused")
		a.p.t.Errorf("%s %v: failed %v, %q; want a refusal with %q", tool, args, g.failed, g.text, why)
	}
}

// see takes a picture, and keeps it beside what the person sees.
func (a *agent) see(args map[string]any) got {
	a.p.t.Helper()
	g := a.call("local_pc_screenshot", args)
	a.keep(g)
	return g
}

// keep keeps what the agent got among the artifacts.
func (a *agent) keep(g got) {
	a.p.t.Helper()
	if g.image == nil {
		a.p.t.Fatalf("no picture came: %s", g.text)
	}
	a.n++
	a.p.d.Keep("agent-saw-"+string(rune('a'+a.n-1)), g.image)
}

// click clicks where the picture shows a place of the screen.
func (a *agent) click(g got, x, y int) got {
	a.p.t.Helper()
	return a.call("local_pc_click", map[string]any{"coordinate": g.at(a.p.t, x, y)})
}

// allowedForSession presses Allow on the card, which is for the session where
// the person chooses nothing else.
func (p *program) allowedForSession(card *apptest.Area) {
	p.t.Helper()
	p.press(card, "Allow", "for", "this", "session")
	p.noCard()
}

// startForAgent is start with a folder whose sessions need no card, so that all
// cards are about screen, mouse and keyboard.
func startForAgent(t testing.TB, o apptest.Options, args ...string) *program {
	t.Helper()
	d := apptest.New(t, o)
	folder := filepath.Join(d.Home, "work")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	d.Give(folder)
	return startIn(t, d, append([]string{"--background", "--policy", "contained", "--folder", folder}, args...)...)
}

// shown has the screen shared by mouse, as a person does who is asked for the
// first time, and gives the picture.
func (a *agent) shown(name string) got {
	a.p.t.Helper()
	c := a.start("local_pc_screenshot", nil)
	a.p.allowedForSession(a.asked(c, name+" is requesting screen access"))
	g := a.wait(c)
	if g.failed {
		a.p.t.Fatalf("no picture came: %s", g.text)
	}
	a.keep(g)
	return g
}

// acting has mouse and keyboard allowed for the session, by a move of the mouse
// to a place of the screen.
func (a *agent) acting(name string, g got, x, y int) {
	a.p.t.Helper()
	c := a.start("local_pc_mouse_move", map[string]any{"coordinate": g.at(a.p.t, x, y)})
	card := a.asked(c, name+" wants to use mouse and keyboard")
	r, _ := card.Rect()
	r.Max.Y -= 70 // above its buttons
	a.p.d.In(r).ClickText("This", "session")
	a.p.allowedForSession(card)
	if g := a.wait(c); g.failed {
		a.p.t.Fatalf("the mouse was not moved: %s", g.text)
	}
}

// reader is an xterm whose program writes what it reads into a file.
type reader struct {
	p    *program
	file string
	rect image.Rectangle
}

func (p *program) reader(title, geometry string) *reader {
	p.t.Helper()
	r := &reader{p: p, file: filepath.Join(p.d.Home, title+".txt")}
	p.d.Start("xterm", "-u8", "-fa", "DejaVu Sans Mono", "-fs", "11", "-title", title, "-geometry", geometry, "-e", "sh", "-c", "cat > '"+r.file+"'")
	r.rect = p.d.WaitWindow(20*time.Second, title).Rect
	if !p.d.Until(10*time.Second, func() bool { _, err := os.Stat(r.file); return err == nil }) {
		p.t.Fatal("the program in the terminal does not run")
	}
	return r
}

func (r *reader) read() string {
	b, err := os.ReadFile(r.file)
	if err != nil {
		r.p.t.Fatal(err)
	}
	return string(b)
}

// has waits until its program has read exactly this.
func (r *reader) has(text string) {
	r.p.t.Helper()
	if !r.p.d.Until(10*time.Second, func() bool { return r.read() == text }) {
		r.p.d.Screenshot("read-otherwise")
		r.p.t.Fatalf("the program in the terminal has read %q, want %q", r.read(), text)
	}
}

func (r *reader) middle() (x, y int) {
	m := r.rect.Min.Add(r.rect.Max).Div(2)
	return m.X, m.Y
}

// handsPID is the process that touches the display.
func (p *program) handsPID() int {
	for _, f := range p.d.Processes() {
		if words := strings.Fields(f.Command); len(words) == 3 && strings.HasSuffix(words[0], "/localpc-desktop") && words[1] == "hands" {
			return f.PID
		}
	}
	return 0
}

// waitControl waits until the snapshot says that somebody sees or acts.
func (p *program) waitControl(what string, ok func(c *snapshot.Control) bool) {
	p.t.Helper()
	p.waitStatus(20*time.Second, what, func(s snapshot.Snapshot) bool { return ok(s.Control) })
}

// intend does what a window's button does.
func (p *program) intend(in snapshot.Intent) {
	p.t.Helper()
	c, err := control.Dial(settings.Paths{Data: p.data}.Socket())
	if err != nil {
		p.t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Intend(in); err != nil {
		p.t.Fatalf("%s: %v", in.Kind, err)
	}
}

// bareHub is a hub of one's own without a browser: its computers and programs
// come by its commands.
type bareHub struct {
	program *program
	p       *apptest.Process
	address string
	data    string
}

// startBareHub starts one, and pairs the program with it.
func startBareHub(t testing.TB, p *program) *bareHub {
	t.Helper()
	h := &bareHub{program: p, address: "http://" + freeAddress(t), data: filepath.Join(p.d.Home, "hub")}
	h.run()
	p.must("pair", h.word("machine", "add", "this computer"))
	p.waitStatus(20*time.Second, "online", func(s snapshot.Snapshot) bool { return s.Hub.Online })
	return h
}

func (h *bareHub) run() {
	h.program.t.Helper()
	h.p = h.program.d.Start(filepath.Join(h.program.bin, "localpc-hub"), "serve", "--data", h.data, "--listen", strings.TrimPrefix(h.address, "http://"))
	h.program.d.WaitOutput(h.p, 20*time.Second, h.address)
}

// word is what a command of the hub prints once: the key, the pairing line.
func (h *bareHub) word(args ...string) string {
	h.program.t.Helper()
	out, err := h.program.d.Run(30*time.Second, filepath.Join(h.program.bin, "localpc-hub"), append(args, "--data", h.data)...)
	if err != nil {
		h.program.t.Fatal(err)
	}
	for _, w := range strings.Fields(out) {
		if strings.HasPrefix(w, "e2b_") || strings.Contains(w, "#") {
			return w
		}
	}
	h.program.t.Fatalf("localpc-hub %v printed %q", args, out)
	return ""
}
