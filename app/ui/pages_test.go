package ui

import (
	"go/ast"
	"go/parser"
	"go/token"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/test"

	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

var autoGPT = snapshot.AutoGPT{Web: "https://platform.autogpt.net", API: "https://platform.autogpt.net", WS: "wss://platform.autogpt.net",
	ClientID: "autogpt-local-executor", Scope: "USE_TOOLS", Ports: "41899-41910"}

const (
	longHost = "a-rather-long-name-for-a-hub.of-the-department-of-long-names.university-of-somewhere.example"
	longHub  = "The hub of the department of long names at the Donaudampfschifffahrtsgesellschaftskapitänsmützenuniversität of somewhere else"
)

// signingIn puts a sign-in on its way into the snapshot.
func (s *stage) signingIn(in snapshot.SigningIn) {
	s.snapshot(func(n *snapshot.Snapshot) {
		if in.Stage != snapshot.SignInStarting {
			in.Until = s.clock.now.Add(9*time.Minute + 41*time.Second)
		}
		n.Connect.Pairing, n.Connect.SignIn = true, &in
	})
}

func (s *stage) pairedWith(h snapshot.Hub) {
	s.snapshot(func(n *snapshot.Snapshot) {
		h.Paired, h.Online = true, true
		n.Hub, n.State, n.Line, n.Machine = h, snapshot.Online, "Online · nothing is running", "Workshop PC"
	})
}

// pages are the looks of the Pair window: how it comes to one, and what it
// says there.
var pages = []struct {
	name string
	set  func(*stage)
	says []string
}{
	{"choose", func(*stage) {}, []string{"Who may ask for this computer?", "This computer only", "My own hub", "AutoGPT"}},
	{"own", func(s *stage) { s.u.pair.choose.options.Select(wayOwn) }, []string{"Address of the hub"}},
	{"own-failed", func(s *stage) {
		s.u.pair.choose.options.Select(wayOwn)
		s.u.pair.choose.address.SetText("https://hub.exampel")
		s.snapshot(func(n *snapshot.Snapshot) {
			n.Connect.PairError = "There is no hub at hub.exampel. Check the address, and that this computer is online."
		})
	}, []string{"There is no hub at hub.exampel. Check the address, and that this computer is online.", "Try again"}},
	{"own-failed-long", func(s *stage) {
		s.u.pair.choose.options.Select(wayOwn)
		s.u.pair.choose.address.SetText("https://" + longHost + "/with/a/path/that/goes/on")
		s.snapshot(func(n *snapshot.Snapshot) {
			n.Connect.PairError = "The certificate of " + longHost + " is signed by an authority that this computer does not know. Add it to the system's certificates, and try again."
		})
	}, []string{longHost}},
	{"own-asked", func(s *stage) {
		s.u.pair.choose.options.Select(wayOwn)
		s.u.pair.choose.address.SetText("https://hub.example")
		s.u.pair.choose.submit()
	}, []string{"Pairing…"}},
	{"autogpt", func(s *stage) { s.u.pair.choose.options.Select(wayAutoGPT) }, []string{"▸ Advanced"}},
	{"autogpt-advanced", func(s *stage) {
		s.u.pair.choose.options.Select(wayAutoGPT)
		s.tap(s.u.pair.win, "▸ Advanced")
	}, []string{"Client ID", "Scope", "Redirect ports", "Web address", "API address", "WebSocket address", "Reset to defaults"}},
	{"autogpt-off", func(s *stage) {
		s.u.pair.choose.options.Select(wayAutoGPT)
		s.snapshot(func(n *snapshot.Snapshot) {
			n.Connect.PairError = "AutoGPT has not switched local computers on for your account yet. Ask them to, then try again."
		})
	}, []string{"AutoGPT has not switched local computers on for your account yet."}},
	{"starting", func(s *stage) {
		s.signingIn(snapshot.SigningIn{Kind: "own", Hub: "https://hub.example", Stage: snapshot.SignInStarting})
	}, []string{"Signing in to hub.example", "Cancel"}},
	{"browser", func(s *stage) {
		s.signingIn(snapshot.SigningIn{Kind: "own", Hub: "https://hub.example", Stage: snapshot.SignInBrowser, Match: "4821", URL: "https://hub.example/oauth/authorize?client_id=localpc"})
	}, []string{"Your browser shows a page of hub.example. Check that it shows 4821, and agree there.", "Open the page again", "Copy the address", "Use a code instead", "9:41 left", "Cancel"}},
	{"browser-long", func(s *stage) {
		s.signingIn(snapshot.SigningIn{Kind: "own", Hub: "https://" + longHost, Stage: snapshot.SignInBrowser, Match: "0007", URL: "https://" + longHost + "/oauth/authorize"})
	}, []string{longHost, "0007"}},
	{"browser-autogpt", func(s *stage) {
		s.signingIn(snapshot.SigningIn{Kind: "autogpt", Hub: "autogpt", Stage: snapshot.SignInBrowser, URL: "https://platform.autogpt.net/auth/authorize"})
	}, []string{"Your browser shows a page of platform.autogpt.net. Sign in there"}},
	{"code", func(s *stage) {
		s.signingIn(snapshot.SigningIn{Kind: "own", Hub: "https://hub.example", Stage: snapshot.SignInCode, URL: "https://hub.example/pair", UserCode: "BCDF-GHJK"})
	}, []string{"https://hub.example/pair", "BCDF-GHJK", "9:41 left", "Copy the code"}},
	{"code-long", func(s *stage) {
		s.signingIn(snapshot.SigningIn{Kind: "own", Hub: "https://" + longHost, Stage: snapshot.SignInCode, URL: "https://" + longHost + "/pair", UserCode: "WWWW-WWWW-WWWW"})
	}, []string{longHost, "WWWW-WWWW-WWWW"}},
	{"finishing", func(s *stage) {
		s.signingIn(snapshot.SigningIn{Kind: "own", Hub: "https://hub.example", Stage: snapshot.SignInFinishing})
	}, []string{"Almost done"}},
	{"paired-own", func(s *stage) {
		s.pairedWith(snapshot.Hub{Kind: "own", Name: "Home", Address: "https://hub.example"})
	}, []string{"Paired with Home", "Online · nothing is running", "Open the Keys page", "Unpair"}},
	{"paired-own-long", func(s *stage) {
		s.pairedWith(snapshot.Hub{Kind: "own", Name: longHub, Address: "https://" + longHost})
	}, []string{"Paired with The hub", "Open the Keys page"}},
	{"paired-as", func(s *stage) {
		s.pairedWith(snapshot.Hub{Kind: "own", Name: "Home", Address: "https://hub.example", Account: "Mallory"})
	}, []string{"Paired with Home as Mallory", "https://hub.example"}},
	{"paired-as-long", func(s *stage) {
		s.pairedWith(snapshot.Hub{Kind: "own", Name: longHub, Address: "https://" + longHost, Account: "Mallory of the department of long names, 2nd floor, left, Graz"})
	}, []string{"Paired with The hub", " as Mallory of the department", "Graz"}},
	{"paired-unpair", func(s *stage) {
		s.pairedWith(snapshot.Hub{Kind: "own", Name: "Home", Address: "https://hub.example"})
		s.tap(s.u.pair.win, "Unpair")
	}, []string{"Unpair this computer?", "Keep it paired"}},
	{"paired-autogpt", func(s *stage) {
		s.pairedWith(snapshot.Hub{Kind: "autogpt", Name: "AutoGPT", Address: "https://platform.autogpt.net"})
	}, []string{"Paired with AutoGPT", "Choose this computer in a chat", "Unpair"}},
	{"clients", func(s *stage) { s.programs("this") },
		[]string{"Connect a program", "Claude Code", "Connected", "Disconnect…", "Connect…", "Another MCP client", "Not found here: Codex.", "Try it safely"}},
	{"clients-none", func(s *stage) {
		s.programs("this")
		s.snapshot(func(n *snapshot.Snapshot) { n.Connect.Clients = n.Connect.Clients[3:] })
	}, []string{"None of the programs that are known here is on this computer yet.", "Not found here: Codex."}},
	{"clients-own", func(s *stage) { s.programs("own") }, []string{"Connect a program on this computer", "Cursor", "Open the Keys page"}},
	{"client", func(s *stage) {
		s.programs("this")
		s.u.pair.showClient("cursor")
	}, []string{"This is put into /home/anna/.cursor/mcp.json beside what is there.", "There is no key in it", "Then: Switch localpc on.", "Its own tools", "Its own terminal", "Connect", "Back"}},
	{"client-connected", func(s *stage) {
		s.programs("this")
		s.tap(s.u.pair.win, "Disconnect…")
	}, []string{"Connected", "Start Claude Code anew.", "/home/anna/.claude.json", "Copy this", "Disconnect", "Back"}},
	{"client-by-hand", func(s *stage) {
		s.programs("this")
		s.u.pair.showClient("vscode")
	}, []string{"so it is left as it is. Put the lines there by hand.", "Copy"}},
	{"client-any", func(s *stage) {
		s.programs("this")
		s.u.pair.showClient(anyClient)
	}, []string{"Another MCP client", "Copy the lines", "One that takes an address only", "Make a key"}},
	{"client-any-key", func(s *stage) {
		s.programs("this")
		s.u.pair.showClient(anyClient)
		s.snapshot(func(n *snapshot.Snapshot) {
			n.Connect.Name, n.Connect.Lines = "Mine", []string{"{", `  "mcpServers": {`, `    "localpc": {"url": "http://127.0.0.1:4417/mcp"}`, "  }", "}"}
		})
	}, []string{"in a file that only you can read. The key is shown only now.", "Done"}},
	{"again-own", func(s *stage) {
		s.pairedWith(snapshot.Hub{Kind: "own", Name: "Home", Address: "https://hub.example"})
		s.snapshot(func(n *snapshot.Snapshot) {
			n.State, n.Line, n.Hub.Online = snapshot.SignIn, "Sign in again", false
			n.Problem, n.Fix, n.FixLabel = "Not connected: the sign-in has ended. Nothing can be asked until you sign in again.", snapshot.Pair, "Sign in"
		})
	}, []string{"Sign in again", "the sign-in has ended", "Sign in"}},
	{"again-this", func(s *stage) {
		s.pairedWith(snapshot.Hub{Kind: "this", Name: "This computer only", Address: "http://127.0.0.1:4417"})
		s.snapshot(func(n *snapshot.Snapshot) { n.State = snapshot.SignIn })
	}, []string{"Pair again"}},
}

// Each page, light and dark, at the usual size and at 200 %. LOCALPC_ARTIFACTS
// names a directory where the pictures are kept; without it what differs in
// nothing but paint is left out.
func TestPairPages(t *testing.T) {
	for _, theme := range []string{"light", "dark"} {
		for _, scale := range []float32{1, 2} {
			if (theme == "dark") != (scale == 2) && os.Getenv("LOCALPC_ARTIFACTS") == "" {
				continue
			}
			for _, p := range pages {
				name := p.name + "-" + theme
				if scale == 2 {
					name += "-200"
				}
				t.Run(name, func(t *testing.T) {
					t.Setenv(kit.ThemeEnv, theme)
					s := newStage(t)
					s.snapshot(func(n *snapshot.Snapshot) {
						n.Line, n.Connect.AutoGPT, n.Connect.AutoGPTUsual = "Not paired yet", autoGPT, autoGPT
					})
					w := s.window(snapshot.WindowPair)
					w.Canvas().(test.WindowlessCanvas).SetScale(scale)
					p.set(s)
					s.keep(w, name)
					for _, want := range p.says {
						if !has(w, want) {
							t.Errorf("the page lacks %q: %q", want, texts(w))
						}
					}
					s.inside(w)
				})
			}
		}
	}
}

// keep paints a window and writes the picture, where somebody wants to look:
// painting takes longer than all the rest.
func (s *stage) keep(w fyne.Window, name string) {
	s.t.Helper()
	dir := os.Getenv("LOCALPC_ARTIFACTS")
	if dir == "" {
		return
	}
	img := w.Canvas().Capture()
	f, err := os.Create(filepath.Join(dir, "ui-"+name+".png"))
	if err == nil {
		err = png.Encode(f, img)
		f.Close()
	}
	if err != nil {
		s.t.Error(err)
	}
}

// inside finds text and controls that stand out of a window's sides, or over
// one another.
func (s *stage) inside(w fyne.Window) {
	s.t.Helper()
	width := w.Canvas().Size().Width
	at := s.u.o.App.Driver().AbsolutePositionForObject
	type place struct {
		what     string
		from, to fyne.Position
	}
	var buttons []place
	walk(w.Content(), func(o fyne.CanvasObject) {
		what, size := "", o.Size()
		switch v := o.(type) {
		case *canvas.Text:
			for _, r := range v.Text {
				if unicode.IsSymbol(r) && !kit.Drawn(r, v.TextStyle) {
					s.t.Errorf("%q is drawn with a font that lacks %q", v.Text, r)
				}
			}
		case *kit.Flow:
			what, size.Width = v.Text(), v.Widest()
		case *kit.Button:
			what = v.Text()
			if m := v.MinSize(); size.Width < m.Width-0.5 || size.Height < m.Height-0.5 {
				s.t.Errorf("button %q is %v, its word needs %v", what, size, m)
			}
			buttons = append(buttons, place{what, at(o), at(o).AddXY(size.Width, size.Height)})
		case *kit.Field:
			what = "a field"
		}
		if what == "" {
			return
		}
		if x := at(o).X; x < 0 || x+size.Width > width-cardPad+0.5 {
			s.t.Errorf("%q reaches from %v to %v in a window %v wide", what, x, x+size.Width, width)
		}
	})
	for i, a := range buttons {
		for _, b := range buttons[i+1:] {
			if a.from.X < b.to.X && b.from.X < a.to.X && a.from.Y < b.to.Y && b.from.Y < a.to.Y {
				s.t.Errorf("buttons %q and %q overlap", a.what, b.what)
			}
		}
	}
}

// Every character of the program's own words can be drawn with what it brings
// along: no font of the system is needed.
func TestWordsNeedNoFontOfTheSystem(t *testing.T) {
	test.NewTempApp(t)
	seen := 0
	for _, pattern := range []string{"*.go", "kit/*.go", "../machine/*.go", "../../consent/policy/*.go", "../../capabilities/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				for _, r := range lit.Value {
					if r < 0x80 {
						continue
					}
					seen++
					if plain := kit.Drawn(r, fyne.TextStyle{}); !plain && !(unicode.IsSymbol(r) && kit.Drawn(r, fyne.TextStyle{Monospace: true})) {
						t.Errorf("%s: %s needs a font of the system for %q", name, lit.Value, r)
					}
				}
				return true
			})
		}
	}
	if seen < 50 {
		t.Errorf("only %d characters were looked at", seen)
	}
}
