const told = 1500 // ms

// copyText copies, and lets the button say for a moment what came of it. Over plain
// HTTP a browser has no clipboard but that of a selection.
export async function copyText(text: string, button: HTMLButtonElement) {
  const label = button.textContent
  const copied = await copy(text)
  button.textContent = copied ? 'Copied' : 'Could not copy'
  setTimeout(() => { button.textContent = label }, told)
}

async function copy(text: string): Promise<boolean> {
  try {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text)
      return true
    }
    const area = document.createElement('textarea')
    area.value = text
    area.className = 'off-screen'
    document.body.append(area)
    area.select()
    const copied = document.execCommand('copy')
    area.remove()
    return copied
  } catch {
    return false
  }
}
