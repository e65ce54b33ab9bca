package ui

import "localpc/app/snapshot"

// showExport asks in which file the whole record goes.
func showExport(a *activityWindow) {
	askFile(a, "Export the record",
		"Everything that was asked for, what you answered and what came of it, in a file that other programs can read, too. It holds what was shown and sent.",
		"Export", "local-pc-record-"+a.ui.o.Clock.Now().Format("2006-01-02")+".jsonl",
		func(path string) { a.ui.intent(snapshot.Intent{Kind: snapshot.Export, Text: path}) })
}
