// Mark is the load line of a ship: a circle and the line that must stay above water.
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <circle cx="16" cy="16" r="9" />
      <path d="M2 16h28" />
    </svg>
  )
}
