export function Memory({ project }: { project: string }) {
  return <section class="page"><h2>Memory of {project}</h2></section>
}
