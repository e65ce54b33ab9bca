package machine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport is who may import whom within the module, by the first pattern
// that fits; "x/..." is x and everything below it. Tests may import more.
var mayImport = []struct {
	pkg  string
	uses []string
}{
	{"tunnel/wire", nil},
	{"tunnel/wire/autogpt", []string{"tunnel/wire"}},
	{"tunnel/wire/ws", nil},
	{"tunnel/wire/bulk", []string{"tunnel/wire", "tunnel/wire/ws"}},
	{"consent", nil},
	{"assets", nil},
	{"consent/...", []string{"consent"}},
	{"tunnel", []string{"tunnel/wire", "tunnel/wire/bulk"}},
	{"tunnel/autogpt", []string{"tunnel", "tunnel/wire/..."}},
	{"tunnel/tunneltest", []string{"tunnel/..."}},
	{"tunnel/hub/limit", nil},
	{"tunnel/hub/web", []string{"tunnel/wire", "tunnel/hub/store", "tunnel/hub/oauth", "tunnel/hub/limit", "assets"}},
	{"tunnel/hub", []string{"tunnel/wire/...", "tunnel/hub/...", "capabilities/computer/space"}},
	{"tunnel/hub/...", []string{"tunnel/wire/...", "tunnel/hub/store", "tunnel/hub/limit", "tunnel/hub/e2b/..."}},
	{"capabilities", []string{"consent", "tunnel/wire"}},
	{"capabilities/all", []string{"capabilities/..."}},
	{"capabilities/capabilitytest", []string{"capabilities", "consent/...", "tunnel/wire"}},
	{"capabilities/shell/judge", []string{"consent"}},
	{"capabilities/shell/look", []string{"consent", "capabilities", "capabilities/shell/judge"}},
	{"capabilities/shell/...", []string{"capabilities", "consent", "tunnel/wire", "capabilities/shell/..."}},
	{"capabilities/network", []string{"capabilities", "consent", "tunnel/wire"}},
	{"capabilities/computer/space", nil},
	{"capabilities/computer/hands", []string{"capabilities/computer/space", "tunnel/wire"}},
	{"capabilities/computer/display", []string{"tunnel/wire", "capabilities/computer/space", "capabilities/computer/hands", "capabilities/computer/display/..."}},
	{"capabilities/computer/display/...", nil},
	{"capabilities/computer/...", []string{"capabilities", "consent", "tunnel/wire", "capabilities/computer/space", "capabilities/computer/hands"}},
	{"capabilities/files/...", []string{"capabilities", "consent", "tunnel/wire", "capabilities/files/..."}},
	{"app/snapshot", nil},
	{"app/settings", []string{"tunnel/wire/autogpt"}},
	{"app/login", nil},
	{"app/setup", []string{"app/settings"}},
	{"app/store", []string{"consent"}},
	{"app/kept", []string{"app/store", "capabilities", "consent"}},
	{"app/control", []string{"app/snapshot", "consent"}},
	{"app/desklink", []string{"app/snapshot", "consent", "capabilities/computer/space", "capabilities/computer/hands", "tunnel/wire"}},
	{"app/tray", []string{"app/snapshot", "assets"}},
	{"app/ui/...", []string{"app/snapshot", "app/desklink", "consent/...", "assets", "app/ui/..."}},
	{"app/machine", []string{"tunnel", "tunnel/autogpt", "tunnel/wire/...", "consent/...", "capabilities", "capabilities/computer/hands", "capabilities/computer/space", "app/snapshot", "app/store", "app/kept", "app/settings", "app/login", "app/setup"}},
	{"app/cmd/localpc-spawn", []string{"capabilities/shell/spawn"}},
	{"app/cmd/localpc-hub", []string{"tunnel/...", "consent"}},
	{"app/cmd/localpc-desktop", []string{"app/ui/...", "app/desklink", "app/snapshot", "capabilities/computer/display"}},
	{"app/cmd/...", []string{"app/...", "capabilities/...", "consent/...", "tunnel/...", "assets"}},
	{"app/apptest", []string{"app/..."}},
}

// onlyIn names packages of others that one place alone may import.
var onlyIn = map[string]string{
	"fyne.io/fyne/v2":               "app/ui/...",
	"fyne.io/systray":               "app/tray",
	"github.com/zalando/go-keyring": "app/login",
	"github.com/gorilla/websocket":  "tunnel/...",
	// What speaks MCP: the face of the hub, and what drives that for Claude.
	"github.com/modelcontextprotocol/go-sdk": "tunnel/hub/...",
	"github.com/libp2p/go-yamux/v5":          "tunnel/wire/bulk",
	// What touches the display: the process that does, alone.
	"github.com/go-vgo/robotgo":     "capabilities/computer/display/robot",
	"github.com/kbinani/screenshot": "capabilities/computer/display",
	"github.com/ebitengine/purego":  "capabilities/computer/display",
}

func fits(pattern, pkg string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == base || strings.HasPrefix(pkg, base+"/")
	}
	return pattern == pkg
}

type file struct {
	path, pkg string
	test      bool
	ast       *ast.File
	set       *token.FileSet
}

// sources parses every Go file of the module.
func sources(t *testing.T) []file {
	t.Helper()
	const root = "../.."
	var out []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == "build" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, filepath.Dir(path))
		out = append(out, file{path: path, pkg: filepath.ToSlash(rel), test: strings.HasSuffix(path, "_test.go"), ast: f, set: set})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("only %d files found: the test looks in the wrong place", len(out))
	}
	return out
}

// The conventions that are read off the source, which is parsed once.
func TestSources(t *testing.T) {
	files := sources(t)
	t.Run("WhoMayImportWhom", func(t *testing.T) { whoMayImportWhom(t, files) })
	t.Run("OnePackageCommentEach", func(t *testing.T) { onePackageCommentEach(t, files) })
	t.Run("LogMessagesAreStatic", func(t *testing.T) { logMessagesAreStatic(t, files) })
}

func whoMayImportWhom(t *testing.T, files []file) {
	for _, f := range files {
		if f.test {
			continue
		}
		i := slices.IndexFunc(mayImport, func(r struct {
			pkg  string
			uses []string
		}) bool {
			return fits(r.pkg, f.pkg)
		})
		if i < 0 {
			t.Errorf("%s: package %s is not in the list of who may import whom", f.path, f.pkg)
			continue
		}
		for _, imp := range f.ast.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			for theirs, where := range onlyIn {
				if fits(theirs+"/...", path) && !fits(where, f.pkg) {
					t.Errorf("%s imports %s, which is for %s alone", f.path, path, where)
				}
			}
			ours, ok := strings.CutPrefix(path, "localpc/")
			if ok && !slices.ContainsFunc(mayImport[i].uses, func(p string) bool { return fits(p, ours) }) {
				t.Errorf("%s: %s may not import %s", f.path, f.pkg, ours)
			}
		}
	}
}

func onePackageCommentEach(t *testing.T, files []file) {
	comments := map[string][]string{}
	for _, f := range files {
		if f.test {
			continue
		}
		if _, ok := comments[f.pkg]; !ok {
			comments[f.pkg] = nil
		}
		if f.ast.Doc != nil && !ast.IsGenerated(f.ast) && strings.HasSuffix(f.path, ".go") {
			comments[f.pkg] = append(comments[f.pkg], f.path)
		}
	}
	for pkg, where := range comments {
		if len(where) == 0 && generatedOnly(files, pkg) {
			continue
		}
		if len(where) != 1 {
			t.Errorf("package %s has %d package comments (%v), not one", pkg, len(where), where)
		}
	}
}

func generatedOnly(files []file, pkg string) bool {
	for _, f := range files {
		if f.pkg == pkg && !f.test && !ast.IsGenerated(f.ast) {
			return false
		}
	}
	return true
}

// Log messages are fixed text, and attributes have fixed camelCase keys:
// nothing that a program or a person wrote gets into either.
func logMessagesAreStatic(t *testing.T, files []file) {
	levels := []string{"Debug", "Info", "Warn", "Error"}
	for _, f := range files {
		if f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(levels, sel.Sel.Name) || !isLogger(sel.X) || len(call.Args) == 0 {
				return true
			}
			at := f.set.Position(call.Pos())
			if !isText(call.Args[0]) {
				t.Errorf("%s: the message is not fixed text", at)
			}
			for i := 1; i < len(call.Args); i += 2 {
				key, ok := call.Args[i].(*ast.BasicLit)
				if !ok || key.Kind != token.STRING {
					t.Errorf("%s: attribute %d has no fixed key", at, i)
					continue
				}
				if s, _ := strconv.Unquote(key.Value); s == "" || strings.ContainsAny(s, " _-") || s[0] < 'a' || s[0] > 'z' {
					t.Errorf("%s: the key %s is not camelCase", at, key.Value)
				}
			}
			return true
		})
	}
}

func isText(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING
}

// isLogger: what is called log, Log, or slog.
func isLogger(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return strings.EqualFold(e.Name, "log") || e.Name == "slog" || e.Name == "logger"
	case *ast.SelectorExpr:
		return strings.EqualFold(e.Sel.Name, "log")
	}
	return false
}

func TestTopLevelEntries(t *testing.T) {
	allowed := []string{"app", "tunnel", "consent", "capabilities", "assets", "packaging", "go.mod", "go.sum", "FyneApp.toml", "Makefile", "README.md",
		".ci", ".git", ".gitignore", "LICENSE", "build"}
	entries, err := filepath.Glob("../../*")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(allowed, filepath.Base(e)) {
			t.Errorf("the top level has %s, which is not part of the layout", filepath.Base(e))
		}
	}
}
