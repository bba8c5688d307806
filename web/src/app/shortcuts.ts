import { useEffect } from 'preact/hooks'
import { stopTurn } from '../chat/actions'
import { step } from '../sessions/list'
import { sideOpen } from './App'
import { helpOpen } from './Help'
import { go, route } from './route'
import { projects } from './server'

const focus = (selector: string) => document.querySelector<HTMLElement>(selector)?.focus()

const project = () => encodeURIComponent((projects.value.find((one) => one.default) ?? projects.value[0])?.name ?? '')

// actions are what single keys do where nobody is writing.
const actions: Record<string, () => void> = {
  '?': () => { helpOpen.value = true },
  n: () => { go('#/'); requestAnimationFrame(() => focus('.composer textarea')) },
  '/': () => { sideOpen.value = true; requestAnimationFrame(() => focus('#search')) },
  j: () => step(1),
  k: () => step(-1),
  i: () => focus('.composer textarea'),
  r: () => document.querySelector<HTMLElement>('button.title')?.click(),
  g: () => document.querySelector('.timeline')?.dispatchEvent(new Event('to-end')),
  '.': () => void stopTurn(),
  m: () => go(`#/memory/${project()}`),
  l: () => go(`#/limits/${project()}`),
}

export function useShortcuts() {
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return
      const target = e.target as HTMLElement
      if (e.key === 'Escape') return leave(target)
      if (target.closest('input, textarea, select, dialog[open], [contenteditable]')) return
      const act = actions[e.key]
      if (!act) return
      e.preventDefault()
      act()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}

function leave(target: HTMLElement) {
  if (sideOpen.value) sideOpen.value = false
  else if (target.matches('input, textarea, select')) target.blur()
  else if (route.value.page !== 'session') return
  else focus('.timeline')
}
