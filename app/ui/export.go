package ui

import (
	"os"
	"path/filepath"
	"strings"

	"fyne.io/fyne/v2"

	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// showExport asks in which file the whole record goes.
func showExport(a *activityWindow) {
	const w = 440
	var hide func()
	name := kit.NewField("File name")
	name.SetText("local-pc-record-" + a.ui.o.Clock.Now().Format("2006-01-02") + ".jsonl")
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
		a.ui.intent(snapshot.Intent{Kind: snapshot.Export, Text: filepath.Join(p.dir, file)})
		hide()
	}
	name.OnSubmitted = func(string) { save() }
	buttons := kit.Row(8, kit.Space(), kit.NewButton("Cancel", kit.Normal, func() { hide() }).WithKeys(keys), kit.NewButton("Export", kit.Primary, save).WithKeys(keys))
	body := kit.Column(12, kit.NewFlow(w, kit.Title, kit.Bold("Export the record", kit.Ink)),
		kit.NewFlow(w, kit.Body, kit.Plain("Everything that was asked for, what you answered and what came of it, in a file that other programs can read, too. It holds what was shown and sent.", kit.Dim)),
		kit.Column(4, kit.NewFlow(w, kit.Small, kit.Plain("File name", kit.Dim)), name),
		kit.Height(pickerRoom(a.win, 250), kit.Width(w, p.view("In this folder"))), buttons)
	hide = kit.Ask(a.win.Canvas(), w+48, body)
	a.win.Canvas().Focus(name)
}
