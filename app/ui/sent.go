package ui

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"fyne.io/fyne/v2"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// sentPicture shows small, in an entry's detail, exactly the picture that its
// program got, and opens and saves it.
type sentPicture struct {
	of   *activityWindow
	head *kit.Flow
	pic  *kit.Picture
	save *kit.Button
	box  *fyne.Container
	id   string // the entry that it is of
	kind string // its MIME type
	data []byte // the file, as it was sent
	img  image.Image
}

func newSentPicture(a *activityWindow, keys *kit.Keys) *sentPicture {
	p := &sentPicture{of: a, head: kit.NewFlow(paneInner, kit.Small), pic: kit.NewPicture(paneInner, paneInner*10/16, "").Whole()}
	p.pic.OnTap = p.open
	enlarge := kit.NewButton("Enlarge", kit.Link, p.open).WithKeys(keys)
	p.save = kit.NewButton("Save as…", kit.Link, func() { showSave(a, p.name(), p.data) }).WithKeys(keys)
	p.box = kit.Pad(12, 0, 0, 0, kit.Column(4, p.head, p.pic, kit.Pad(0, 0, 0, -2, kit.Row(8, enlarge, p.save, kit.Space()))))
	p.box.Hide()
	return p
}

// set shows the picture of a detail, if it has one.
func (p *sentPicture) set(e snapshot.Entry, d snapshot.Detail) {
	p.box.Hidden = len(d.Picture) == 0
	if p.box.Hidden {
		p.id, p.data, p.img = "", nil, nil
		p.pic.Set(nil)
		return
	}
	if p.id == e.ID && bytes.Equal(p.data, d.Picture) {
		return
	}
	p.id, p.kind, p.data, p.img = e.ID, d.PictureType, d.Picture, nil
	p.head.Set(kit.Plain("The picture that was sent · "+bytesWord(int64(len(p.data))), kit.Dim))
	p.pic.Set(nil)
	p.pic.Say("")
	id, data := p.id, p.data
	p.of.ui.o.Background(func() func() {
		img, err := decode(data, mostPixels)
		return func() {
			switch {
			case p.id != id || !bytes.Equal(p.data, data):
				return
			case err != nil:
				p.pic.Say("It can't be shown here. Save it to look at it.")
				return
			}
			p.img = img
			b := img.Bounds()
			p.head.Set(kit.Plain(fmt.Sprintf("The picture that was sent · %d × %d · %s", b.Dx(), b.Dy(), bytesWord(int64(len(data)))), kit.Dim))
			p.pic.Set(img)
			p.of.pane.body.Refresh()
		}
	})
}

// open shows it in a window of its own, as large as it is or as there is room.
func (p *sentPicture) open() {
	if p.img == nil {
		return
	}
	u := p.of.ui
	if u.viewer == nil {
		u.viewer = u.window("Picture that was sent", fyne.NewSize(960, 640))
		u.viewer.Canvas().SetOnTypedKey(func(e *fyne.KeyEvent) {
			if e.Name == fyne.KeyEscape {
				u.hide(u.viewer)
			}
		})
	}
	w := u.viewer
	const edge = 16
	scale := max(1, w.Canvas().Scale())
	b := p.img.Bounds()
	large := kit.NewPicture(320, 200, "").Whole()
	large.Set(p.img)
	w.SetContent(kit.Pad(edge, edge, edge, edge, large))
	w.Resize(u.fit(w, fyne.NewSize(max(320, float32(b.Dx())/scale+2*edge+4), max(200, float32(b.Dy())/scale+2*edge+4))))
	if !u.open[w] {
		u.open[w] = true
		w.Show()
		u.settleSize(w, fyne.Size{}, 6)
		u.count()
	}
	w.RequestFocus()
}

// name is what the file is called at first.
func (p *sentPicture) name() string {
	ext := ".jpg"
	if p.kind == "image/png" {
		ext = ".png"
	}
	return "picture-" + p.of.pane.now.Time.Local().Format("2006-01-02-150405") + ext
}

// showSave asks where a file goes, and writes it there.
func showSave(a *activityWindow, name string, data []byte) {
	askFile(a, "Save the picture", "It is saved exactly as the program got it.", "Save", name, func(path string) {
		a.ui.o.Background(func() func() {
			err := writeNew(path, data)
			return func() {
				switch {
				case errors.Is(err, fs.ErrExist):
					a.told(desklink.Told{Text: "There is a file of that name already. Choose another one."})
				case err != nil:
					a.told(desklink.Told{Text: "The picture could not be saved there. Choose another folder."})
				default:
					a.told(desklink.Told{OK: true, Text: "The picture is in " + shortPath(path) + "."})
				}
			}
		})
	})
}

// writeNew makes a file that was not there.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err != nil {
		f.Close()
		os.Remove(path)
		return err
	}
	return f.Close()
}

// askFile asks in which file of which folder something goes.
func askFile(a *activityWindow, title, line, yes, suggested string, do func(path string)) {
	const w = 440
	var hide func()
	name := kit.NewField("File name")
	name.SetText(suggested)
	keys := &kit.Keys{Key: func(e *fyne.KeyEvent) {
		if e.Name == fyne.KeyEscape {
			hide()
		}
	}}
	name.OnEscape = func() { hide() }
	start, err := os.UserHomeDir()
	if err != nil {
		start = "/"
	}
	p := newPicker(a.ui, w, keys, nil, start, nil)
	p.anyFolder = true
	p.open(start)
	save := func() {
		file := strings.TrimSpace(name.Text)
		if file == "" || strings.ContainsRune(file, filepath.Separator) || p.problem {
			return
		}
		hide()
		do(filepath.Join(p.dir, file))
	}
	name.OnSubmitted = func(string) { save() }
	buttons := kit.Row(8, kit.Space(), kit.NewButton("Cancel", kit.Normal, func() { hide() }).WithKeys(keys), kit.NewButton(yes, kit.Primary, save).WithKeys(keys))
	body := kit.Column(12, kit.NewFlow(w, kit.Title, kit.Bold(title, kit.Ink)),
		kit.NewFlow(w, kit.Body, kit.Plain(line, kit.Dim)),
		kit.Column(4, kit.NewFlow(w, kit.Small, kit.Plain("File name", kit.Dim)), name),
		kit.Height(pickerRoom(a.win, 250), kit.Width(w, p.view("In this folder"))), buttons)
	hide = kit.Ask(a.win.Canvas(), w+48, body)
	a.win.Canvas().Focus(name)
}
