package capabilities

import "testing"

func TestMadeTellsFilesApart(t *testing.T) {
	m := NewMade(0)
	m.Add("a.txt", FileID{Dev: 1, Ino: 5, Birth: 100})
	if !m.Has("a.txt", FileID{Dev: 1, Ino: 5}) {
		t.Error("the same file without a birth must count")
	}
	if m.Has("a.txt", FileID{Dev: 1, Ino: 5, Birth: 101}) {
		t.Error("a reused inode number counted as the session's file")
	}
	if m.Has("b.txt", FileID{Dev: 1, Ino: 5, Birth: 100}) {
		t.Error("another path counted")
	}
	if (FileID{}).Same(FileID{}) {
		t.Error("nothing is the same as nothing")
	}
}

func TestMadeFollowsAMove(t *testing.T) {
	m := NewMade(0)
	m.Add("d", FileID{Dev: 1, Ino: 1})
	m.Add("d/x", FileID{Dev: 1, Ino: 2})
	m.Add("dd", FileID{Dev: 1, Ino: 3})
	m.Add("e/old", FileID{Dev: 1, Ino: 4})
	m.Move("d", "e")
	for p, want := range map[string]uint64{"e": 1, "e/x": 2, "dd": 3} {
		if !m.Has(p, FileID{Dev: 1, Ino: want}) {
			t.Errorf("%s is not known after the move", p)
		}
	}
	for p, ino := range map[string]uint64{"d": 1, "d/x": 2, "e/old": 4} {
		if m.Has(p, FileID{Dev: 1, Ino: ino}) {
			t.Errorf("%s is still known after the move", p)
		}
	}
	m.ForgetTree("e")
	if m.Has("e/x", FileID{Dev: 1, Ino: 2}) || !m.Has("dd", FileID{Dev: 1, Ino: 3}) {
		t.Error("ForgetTree must drop what is below, and only that")
	}
}

func TestMadeIsBounded(t *testing.T) {
	m := NewMade(2)
	for i, p := range []string{"a", "b", "c"} {
		m.Add(p, FileID{Dev: 1, Ino: uint64(i + 1)})
	}
	if m.Has("c", FileID{Dev: 1, Ino: 3}) {
		t.Error("more than the maximum was remembered")
	}
}
