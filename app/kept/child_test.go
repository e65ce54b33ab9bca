package kept_test

func child() {}
