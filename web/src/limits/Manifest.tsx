import { useLoad } from '../app/load'
import { Failure } from '../app/PageHead'
import { server } from '../app/server'

type Value = string | number | boolean | Value[] | { [key: string]: Value }

// Manifest shows the manifest in force, section by section, with the names of TOML.
export function Manifest({ project }: { project: string }) {
  const manifest = useLoad((signal) => server.get('/v1/manifest', { query: { project }, signal }), [project])
  const sections = manifest.value ? sectionsOf('', manifest.value as { [key: string]: Value }) : []
  return (
    <section class="block" aria-labelledby="manifest">
      <h2 id="manifest">Manifest in force</h2>
      <Failure text={manifest.failure} />
      {sections.map(({ name, keys }) => (
        <details key={name} class="section" open={name.startsWith('worker')}>
          <summary><code>[{name}]</code></summary>
          <dl>{keys.map(([key, value]) => <div key={key}><dt><code>{key}</code></dt><dd><code>{JSON.stringify(value)}</code></dd></div>)}</dl>
        </details>
      ))}
    </section>
  )
}

function sectionsOf(name: string, table: { [key: string]: Value }): { name: string; keys: [string, Value][] }[] {
  const isTable = (value: Value): value is { [key: string]: Value } => typeof value === 'object' && !Array.isArray(value)
  const keys = Object.entries(table).filter(([, value]) => !isTable(value))
  const inner = Object.entries(table).flatMap(([key, value]) => (isTable(value) ? sectionsOf(name ? `${name}.${key}` : key, value) : []))
  return [...(keys.length > 0 && name ? [{ name, keys }] : []), ...inner]
}
