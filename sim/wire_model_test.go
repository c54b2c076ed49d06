package sim

import (
	"net/http"

	"coxswain/modeltest"
)

// modelClient reaches the model server without sockets, so that it works on
// fake time.
func modelClient(s *modeltest.Server) *http.Client { return &http.Client{Transport: s.Transport()} }
