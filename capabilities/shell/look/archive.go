package look

import "localpc/capabilities/shell/judge"

func (l *looker) extract(a judge.Act)  { l.note(unknown, "what the archive has can't be told") }
func (l *looker) gitClean(a judge.Act) { l.note(unknown, "what git removes can't be told") }
func (l *looker) gitReset(a judge.Act) { l.note(unknown, "what git replaces can't be told") }
