package ui

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"fyne.io/fyne/v2"

	"localpc/app/ui/kit"
)

// picker chooses a folder: a list to walk through, by mouse or with arrow keys
// and Enter.
type picker struct {
	ui        *UI
	width     float32
	keys      *kit.Keys
	suggested []string
	dir       string
	items     []pickItem
	problem   bool                // dir can't be opened
	anyFolder bool                // the home folder will do, too
	done      func(folder string) // "": none

	path *kit.Flow
	note *kit.Flow
	rows *kit.Rows
	use  *kit.Button
}

type pickItem struct{ sign, name, path string }

// mostFolders bounds what the list shows of one folder.
const mostFolders = 2000

func newPicker(u *UI, width float32, keys *kit.Keys, suggested []string, dir string, done func(string)) *picker {
	p := &picker{ui: u, width: width, keys: keys, suggested: suggested, done: done}
	p.path = kit.NewLine(width, kit.Lead, 2)
	p.note = kit.NewFlow(width, kit.Small)
	p.use = kit.NewButton("Use this folder", kit.Primary, func() { p.done(p.dir) }).WithKeys(keys)
	p.rows = kit.NewRows(32)
	p.rows.Keys = keys
	p.rows.Count = func() int { return len(p.items) }
	p.rows.New = newPickRow
	p.rows.Update = p.update
	p.rows.OnSelect = func(int) {}
	p.rows.OnOpen = func(i int) { p.open(p.items[i].path) }
	p.rows.OnTap = p.rows.OnOpen
	p.open(dir)
	return p
}

// open reads dir and shows what is in it.
func (p *picker) open(dir string) {
	dir = filepath.Clean(dir)
	p.dir = dir
	p.path.Set(kit.Remote(shortPath(dir), kit.Bold("", kit.Ink))...)
	p.ui.o.Background(func() func() {
		names, cut, err := subfolders(dir)
		return func() {
			if p.dir != dir {
				return // walked on meanwhile
			}
			p.fill(names, cut, err)
		}
	})
}

func (p *picker) fill(names []string, cut bool, err error) {
	p.items = nil
	for _, s := range p.suggested {
		if s != p.dir {
			p.items = append(p.items, pickItem{"★", shortPath(s), s})
		}
	}
	if up := filepath.Dir(p.dir); up != p.dir {
		p.items = append(p.items, pickItem{"↑", "Up to " + shortPath(up), up})
	}
	for _, n := range names {
		p.items = append(p.items, pickItem{"▸", n, filepath.Join(p.dir, n)})
	}
	home, _ := os.UserHomeDir()
	words, ok := "", true
	p.problem = err != nil
	switch {
	case errors.Is(err, fs.ErrNotExist) && slices.Contains(p.suggested, p.dir):
		words, p.problem = "This folder is new: it is made when you start.", false
	case err != nil:
		words, ok = "This folder can't be opened. Choose another one.", false
	case !p.anyFolder && (p.dir == home || p.dir == "/"):
		words, ok = "Choose a folder inside this one: a program never gets all of it.", false
	case cut:
		words = "Only the first folders are listed."
	case len(names) == 0:
		words = "No folders in here."
	}
	p.note.Set(kit.Plain(words, kit.Dim))
	p.note.Hidden = words == ""
	p.use.Enable(ok)
	p.rows.Top()
}

// subfolders are the names of the folders in dir, sorted, hidden ones left
// out; cut says that there are more.
func subfolders(dir string) (names []string, cut bool, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	for len(names) < mostFolders {
		entries, err := f.ReadDir(256)
		for _, e := range entries {
			if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				names = append(names, e.Name())
			}
		}
		if err != nil {
			break
		}
	}
	if len(names) >= mostFolders {
		names, cut = names[:mostFolders], true
	}
	sort.Slice(names, func(i, j int) bool { return strings.ToLower(names[i]) < strings.ToLower(names[j]) })
	return names, cut, nil
}

// pickerRoom is how high a picker may be over a window, beside taken of other
// things.
func pickerRoom(w fyne.Window, taken float32) float32 {
	return max(150, min(300, w.Canvas().Size().Height-taken))
}

func (p *picker) view(caption string) fyne.CanvasObject {
	head := kit.Column(4, kit.NewFlow(p.width, kit.Small, kit.Plain(caption, kit.Dim)), p.path, p.note)
	return kit.Frame(kit.Pad(0, 0, 12, 0, head), kit.Panel(kit.Win, kit.Edge, 4, p.rows), nil)
}

func (p *picker) buttons() fyne.CanvasObject {
	back := kit.NewButton("Back", kit.Normal, func() { p.done("") }).WithKeys(p.keys)
	return kit.Row(8, back, kit.Space(), p.use)
}

func newPickRow() fyne.CanvasObject {
	return kit.NewCells(kit.Body, 16, 0)
}

func (p *picker) update(i int, chosen bool, o fyne.CanvasObject) {
	it := p.items[i]
	o.(*kit.Cells).Set(chosen, []kit.Span{kit.Plain(it.sign, kit.Dim)}, kit.Remote(it.name, kit.Plain("", kit.Ink)))
}
