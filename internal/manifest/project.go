package manifest

// DefaultProject is the project that a client means who names none: the one named
// default, or the only one; empty when there is no such project.
func (m *Manifest) DefaultProject() string {
	if _, ok := m.Projects[defaultProject]; ok {
		return defaultProject
	}
	if len(m.Projects) != 1 {
		return ""
	}
	for name := range m.Projects {
		return name
	}
	return ""
}
