import { signal } from '@preact/signals'

// Route is what the part of the address after # names.
export type Route =
  | { page: 'new' }
  | { page: 'session'; id: string }
  | { page: 'memory'; project: string }
  | { page: 'limits'; project: string }

export const route = signal<Route>(parse(location.hash))

addEventListener('hashchange', () => { route.value = parse(location.hash) })

export function parse(hash: string): Route {
  const [page, rest = ''] = hash.replace(/^#\//, '').split('/')
  const name = decode(rest)
  switch (page) {
    case 'sessions':
      return name ? { page: 'session', id: name } : { page: 'new' }
    case 'memory':
    case 'limits':
      return { page, project: name }
  }
  return { page: 'new' }
}

export const sessionAddress = (id: string) => `#/sessions/${encodeURIComponent(id)}`

export function go(hash: string) {
  location.hash = hash
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
